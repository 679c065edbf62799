// The values of a plot's curves under the pointer. A plot says in its data- what its corners are;
// its paths are in the drawing's own units.
document.querySelectorAll("svg.plot").forEach(function (plot) {
    "use strict";
    const numbers = (text) => text.split(" ").map(Number);
    const [x0, x1] = numbers(plot.dataset.x), [y0, y1] = numbers(plot.dataset.y);
    const [left, right, top, bottom] = numbers(plot.dataset.box);
    const curves = Array.from(plot.querySelectorAll("path[data-label]"), (path) => ({
        label: path.dataset.label,
        points: (path.getAttribute("d").match(/[-\d.]+ [-\d.]+/g) || []).map(numbers),
    })).filter((curve) => curve.points.length > 0);

    const tip = document.createElement("div");
    const rule = document.createElementNS("http://www.w3.org/2000/svg", "path");
    tip.className = "tip";
    tip.hidden = true;
    rule.setAttribute("class", "rule");
    plot.append(rule);
    plot.parentNode.append(tip);

    function valueAt(py) {
        const share = (bottom - py) / (bottom - top);
        return plot.dataset.log ? y0 * Math.pow(y1 / y0, share) : y0 + share * (y1 - y0);
    }
    function hide() {
        tip.hidden = true;
        rule.setAttribute("d", "");
    }
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("pointermove", function (event) {
        const frame = plot.getBoundingClientRect();
        const px = ((event.clientX - frame.left) / frame.width) * plot.viewBox.baseVal.width;
        if (px < left || px > right) return hide();
        const place = x0 + ((px - left) / (right - left)) * (x1 - x0);
        const lines = [plot.dataset.name + " " + Number(place.toPrecision(5))];
        for (const curve of curves) {
            const near = curve.points.reduce((a, b) => (Math.abs(b[0] - px) < Math.abs(a[0] - px) ? b : a));
            lines.push(valueAt(near[1]).toPrecision(4) + "  " + curve.label);
        }
        tip.textContent = lines.join("\n");
        tip.hidden = false;
        rule.setAttribute("d", "M" + px + " " + top + "V" + bottom);
        tip.style.left = Math.max(0, Math.min(event.clientX - frame.left + 12, frame.width - tip.offsetWidth)) + "px";
    });
});
