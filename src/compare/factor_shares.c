#include "compare/factor_shares.h"

#include <stdio.h>

#include "number/format.h"

static bool rounds_scales(const char *precision) {
    const Format format = format_named(precision);
    return format != FORMAT_COUNT && format_table[format].scale == FORMAT_E4M3;
}

FactorShares factor_shares(const LayerFactors *factors) {
    const double count = (double)factors->count;
    FactorShares shares = {.is_known = factors->count > 0, .of = factors};
    if (!shares.is_known)
        return shares;
    shares.flushed = (double)factors->flushed / count;
    shares.subnormal = (double)factors->subnormal / count;
    shares.saturated = (double)factors->saturated / count;
    shares.broken = (double)factors->broken / count;
    shares.lost = shares.flushed + shares.broken;
    if (!rounds_scales(factors->precision))
        shares.lost += shares.saturated;
    return shares;
}

FactorShares factor_shares_worst(const LayerFactors *list, int count, int layer) {
    FactorShares worst = {.is_known = false};
    for (int i = 0; i < count; i++) {
        if (list[i].layer != layer)
            continue;
        const FactorShares one = factor_shares(&list[i]);
        if (one.is_known && (!worst.is_known || one.lost > worst.lost))
            worst = one;
    }
    return worst;
}

static const char *share_text(char text[16], double share) {
    const double percent = 100 * share;
    snprintf(text, 16, percent > 0 && percent < 0.01 ? "<0.01 %%" : "%.2f %%", percent);
    return share > 0 ? text : "0";
}

void factor_words(const LayerFactors *factors, char text[FACTOR_WORDS_SIZE]) {
    const FactorShares shares = factor_shares(factors);
    char flushed[16], saturated[16], broken[48] = "", scales[64] = "";
    if (factors->broken > 0) {
        char share[16];
        snprintf(broken, sizeof broken, ", %s not finite", share_text(share, shares.broken));
    }
    if (factors->has_scales && factors->least < factors->most)
        snprintf(scales, sizeof scales, ", scales 2^%d to 2^%d, most about 2^%d", factors->least,
                 factors->most, factors->middle);
    else if (factors->has_scales)
        snprintf(scales, sizeof scales, ", scale 2^%d", factors->most);
    snprintf(text, FACTOR_WORDS_SIZE, "%ss: %s flushed, %s saturated%s%s", factors->role,
             share_text(flushed, shares.flushed), share_text(saturated, shares.saturated), broken,
             scales);
}

int64_t factors_hold_until(const LayerFactors *factors) {
    const int64_t usual = 2048, share = 16; // between two counts, with much to spare
    return factors->step + usual + factors->step / share;
}
