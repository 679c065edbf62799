// The line at the foot: text with a cursor, or a question.
#include <stdio.h>
#include <string.h>

#include "base/rune.h"
#include "base/sanitize.h"
#include "ui/screen.h"

static void open_prompt(Ui *ui, const char *label, const char *text, bool is_question,
                        void (*done)(Ui *ui, const char *text)) {
    Prompt *prompt = &ui->prompt;
    *prompt = (Prompt){.open = true, .is_question = is_question, .done = done};
    sanitize_line(prompt->label, sizeof prompt->label, label, strlen(label));
    snprintf(prompt->text, sizeof prompt->text, "%s", text);
    prompt->cursor = (int)strlen(prompt->text);
    ui->dirty = true;
}

void prompt_ask(Ui *ui, const char *label, const char *text,
                void (*done)(Ui *ui, const char *text)) {
    open_prompt(ui, label, text, false, done);
}

void prompt_confirm(Ui *ui, const char *question, void (*yes)(Ui *ui, const char *text)) {
    open_prompt(ui, question, "", true, yes);
}

// ---- editing ------------------------------------------------------------------------------------

static int step_left(const Prompt *prompt, int at) {
    while (at > 0 && ((unsigned char)prompt->text[--at] & 0xC0) == 0x80)
        ;
    return at;
}

static int step_right(const Prompt *prompt, int at) {
    const char *next = prompt->text + at;
    rune_next(&next);
    return (int)(next - prompt->text);
}

static void remove_between(Prompt *prompt, int from, int to) {
    memmove(prompt->text + from, prompt->text + to, strlen(prompt->text + to) + 1);
    prompt->cursor = from;
}

// What is written comes in place of what stands between `from` and the cursor; nothing does where
// the line has no room for it.
static void write_over(Prompt *prompt, int from, const char *bytes, size_t length) {
    const char *behind = prompt->text + prompt->cursor;
    const size_t rest = strlen(behind) + 1;
    if ((size_t)from + length + rest > sizeof prompt->text)
        return;
    memmove(prompt->text + from + length, behind, rest);
    memcpy(prompt->text + from, bytes, length);
    prompt->cursor = from + (int)length;
}

static void insert(Prompt *prompt, int key) {
    char bytes[4];
    write_over(prompt, prompt->cursor, bytes, (size_t)rune_encode((uint32_t)key, bytes));
}

static int word_before(const Prompt *prompt) {
    int at = prompt->cursor;
    while (at > 0 && prompt->text[at - 1] == ' ')
        at--;
    while (at > 0 && prompt->text[at - 1] != ' ')
        at--;
    return at;
}

static void note(Prompt *prompt, Ink ink, const char *text) {
    sanitize_line(prompt->note, sizeof prompt->note, text, strlen(text));
    prompt->note_ink = ink;
    prompt->note_is_list = false;
}

// What can follow, the one that was chosen first; as many as fit.
static void note_words(Prompt *prompt, const char *const *words, int count, int chosen) {
    char list[MESSAGE_SIZE] = "";
    size_t used = 0;
    for (int i = 0; i < count && used + strlen(words[(chosen + i) % count]) + 3 < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s  ", words[(chosen + i) % count]);
    note(prompt, INK_DIM, list);
    prompt->note_is_list = true;
    prompt->note_bright = prompt->turn > 0 ? (int)strlen(words[chosen]) : 0;
}

static size_t shared_length(const char *const *words, int count) {
    size_t shared = strlen(words[0]);
    for (int i = 1; i < count; i++)
        for (size_t j = 0; j < shared; j++)
            if (words[i][j] != words[0][j])
                shared = j;
    return shared;
}

// First comes the longest beginning that all words share, then each of them in turn, and all are
// listed. What stands behind the cursor stays there.
static void complete(Ui *ui, int by) {
    enum { MOST = 64 };
    Prompt *prompt = &ui->prompt;
    const char *words[MOST];
    int from = 0;
    if (prompt->turn == 0)
        snprintf(prompt->typed, sizeof prompt->typed, "%.*s", prompt->cursor, prompt->text);
    int count = prompt->complete(ui, prompt->typed, &from, words, MOST);
    if (count == 0) {
        note(prompt, INK_WARN, "nothing to complete here: type it");
        return;
    }
    size_t shared = shared_length(words, count), typed = strlen(prompt->typed + from);
    int chosen = 0;
    bool is_verb = count == 1 && from == 0 && prompt->has_verbs;
    if (prompt->turn > 0 || (count > 1 && shared <= typed)) {
        chosen = (prompt->turn + count + (prompt->turn > 0 ? by - 1 : 0)) % count;
        prompt->turn = chosen + 1;
        shared = strlen(words[chosen]);
    }
    write_over(prompt, from, words[chosen], shared);
    if (is_verb && prompt->text[prompt->cursor] != ' ') // what it is about comes next
        insert(prompt, ' ');
    if (count > 1)
        note_words(prompt, words, count, chosen);
}

// The newest first, each once.
static void remember(Recalled *recalled, const char *line) {
    int at = 0;
    while (at < recalled->count && strcmp(recalled->lines[at], line) != 0)
        at++;
    if (!line[0])
        return;
    at = at < MOST_RECALLED ? at : MOST_RECALLED - 1;
    recalled->count += at == recalled->count;
    memmove(recalled->lines[1], recalled->lines[0], (size_t)at * sizeof *recalled->lines);
    snprintf(recalled->lines[0], sizeof *recalled->lines, "%s", line);
}

// True: the key went through them.
static bool recall(Ui *ui, int key) {
    Prompt *prompt = &ui->prompt;
    const Recalled *recalled = &ui->recalled;
    int back = prompt->back + (key == KEY_CODE_UP ? 1 : -1);
    if (!prompt->recalls || (key != KEY_CODE_UP && key != KEY_CODE_DOWN))
        return false;
    if (back < 0 || back > recalled->count)
        return true;
    if (prompt->back == 0)
        memcpy(prompt->latest, prompt->text, sizeof prompt->latest);
    memcpy(prompt->text, back > 0 ? recalled->lines[back - 1] : prompt->latest,
           sizeof prompt->text);
    prompt->cursor = (int)strlen(prompt->text);
    prompt->back = back;
    return true;
}

static void finish(Ui *ui, bool take) {
    Prompt prompt = ui->prompt; // what is done may ask again
    ui->prompt.open = false;
    if (take && prompt.recalls)
        remember(&ui->recalled, prompt.text);
    if (take)
        prompt.done(ui, prompt.text);
    else if (prompt.dropped)
        prompt.dropped(ui);
}

// Blanks at the end are slips of the finger, or a completion's: nobody means them.
static void trim_end(Prompt *prompt) {
    size_t length = strlen(prompt->text);
    while (length > 0 && prompt->text[length - 1] == ' ')
        prompt->text[--length] = 0;
    prompt->cursor = prompt->cursor < (int)length ? prompt->cursor : (int)length;
}

// False: it stays open.
static bool take_text(Ui *ui) {
    Error error;
    trim_end(&ui->prompt);
    bool fits = !ui->prompt.check || ui->prompt.check(ui, ui->prompt.text, &error);
    if (fits)
        finish(ui, true);
    else
        note(&ui->prompt, INK_WARN, error.text);
    return fits;
}

// Keys that go to a neighbour take the text along; true: it was one.
static bool move_on(Ui *ui, int key) {
    void (*moved)(Ui * ui, int by) = ui->prompt.moved;
    bool up = key == KEY_CODE_UP || key == KEY_CODE_BACKTAB;
    if (!moved || (!up && key != KEY_CODE_DOWN && key != '\t'))
        return false;
    if (take_text(ui))
        moved(ui, up ? -1 : 1);
    return true;
}

static void answer(Ui *ui, int key) {
    if (key == 'y' || key == 'Y')
        finish(ui, true);
    else if (key == 'n' || key == 'N' || key == 'q' || key == KEY_CODE_ESCAPE)
        finish(ui, false);
}

// True: the text may have changed.
static bool edit(Ui *ui, int key) {
    Prompt *prompt = &ui->prompt;
    int length = (int)strlen(prompt->text);
    switch (key) {
    case '\r':
    case '\n':
    case KEY_CODE_ENTER: take_text(ui); return false;
    case KEY_CODE_ESCAPE: finish(ui, false); return false;
    case KEY_CODE_LEFT: prompt->cursor = step_left(prompt, prompt->cursor); break;
    case KEY_CODE_RIGHT: prompt->cursor = step_right(prompt, prompt->cursor); break;
    case KEY_CODE_CONTROL('A'):
    case KEY_CODE_HOME: prompt->cursor = 0; break;
    case KEY_CODE_CONTROL('E'):
    case KEY_CODE_END: prompt->cursor = length; break;
    case KEY_CODE_BACKSPACE:
        if (length == 0) {
            finish(ui, false);
            return false;
        }
        remove_between(prompt, step_left(prompt, prompt->cursor), prompt->cursor);
        break;
    case KEY_CODE_DELETE:
        remove_between(prompt, prompt->cursor, step_right(prompt, prompt->cursor));
        break;
    case KEY_CODE_CONTROL('U'): remove_between(prompt, 0, prompt->cursor); break;
    case KEY_CODE_CONTROL('W'): remove_between(prompt, word_before(prompt), prompt->cursor); break;
    default:
        if (key >= ' ' && key < KEY_CODE_UP)
            insert(prompt, key);
    }
    return true;
}

void prompt_key(Ui *ui, int key) {
    Prompt *prompt = &ui->prompt;
    bool is_tab = key == '\t' || key == KEY_CODE_BACKTAB;
    prompt->note[0] = 0;
    prompt->note_bright = 0;
    if (prompt->is_question) {
        answer(ui, key);
        return;
    }
    if (prompt->complete && is_tab) {
        complete(ui, key == '\t' ? 1 : -1);
        return;
    }
    prompt->turn = 0;
    if (!recall(ui, key) && !move_on(ui, key) && edit(ui, key) && prompt->changed)
        prompt->changed(ui, prompt->text);
}

// ---- drawing ------------------------------------------------------------------------------------

void foot_wrap(Area area, Style style, const char *text) {
    int width = area.width - 2;
    bool fits = text_width(text) <= width;
    int rows = fits ? 1 : area_wrap(area_to_measure(width), 0, style, text);
    rows = rows < area.height ? rows : area.height;
    Area foot = area_part(area, 0, area.height - rows, area.width, rows);
    area_fill(foot, style_of(INK_TEXT));
    foot = area_part(foot, 1, 0, width, rows);
    if (fits)
        area_text(foot, 0, 0, style, text);
    else
        area_wrap(foot, 0, style, text);
}

// A question that has no room before its answers stands above them.
static bool is_long(const Prompt *prompt, int width) {
    enum { ANSWERS = 14 }; // columns of "y yes  n no"
    return prompt->is_question && text_width(prompt->label) > width - ANSWERS;
}

// A list of what can follow is one row: it begins with the word that was chosen.
static void draw_list(const Prompt *prompt, Area area) {
    char bright[MESSAGE_SIZE];
    area = area_part(area, 0, area.height - 1, area.width, 1);
    area_fill(area, style_of(INK_TEXT));
    area_text_cut(area, 1, 0, area.width - 2, style_of(prompt->note_ink), prompt->note);
    snprintf(bright, sizeof bright, "%.*s", prompt->note_bright, prompt->note);
    area_text_cut(area, 1, 0, area.width - 2, style_bold(INK_BRIGHT), bright);
}

void prompt_draw_note(Ui *ui, Area area) {
    const Prompt *prompt = &ui->prompt;
    if (is_long(prompt, area.width))
        foot_wrap(area, style_bold(INK_WARN), prompt->label);
    else if (prompt->note[0] && prompt->note_is_list)
        draw_list(prompt, area);
    else if (prompt->note[0])
        foot_wrap(area, style_of(prompt->note_ink), prompt->note);
    else if (prompt->hint)
        foot_wrap(area, style_of(INK_DIM), prompt->hint);
}

void prompt_draw(Ui *ui, Area area, int *cursor_column) {
    const Prompt *prompt = &ui->prompt;
    Ink ink = prompt->is_question ? INK_WARN : INK_ACCENT;
    int room = prompt->is_question ? area.width : area.width * 3 / 4;
    const char *label = is_long(prompt, area.width) ? "" : prompt->label;
    int column = area_text_cut(area, 1, 0, room, style_bold(ink), label) + (label[0] ? 1 : 0);
    if (prompt->is_question) {
        area_text(area, column, 0, style_bold(INK_ACCENT), "y");
        column = area_text(area, column + 1, 0, style_of(INK_DIM), " yes  ");
        area_text(area, column, 0, style_bold(INK_ACCENT), "n");
        area_text(area, column + 1, 0, style_of(INK_DIM), " no");
        return;
    }
    // What does not fit gives way at the left.
    const char *text = prompt->text, *cursor = prompt->text + prompt->cursor;
    char before[PROMPT_SIZE];
    snprintf(before, sizeof before, "%.*s", (int)(cursor - text), text);
    const char *shown = before;
    while (text_width(shown) >= area.width - column && *shown)
        rune_next(&shown);
    column = area_text(area, column, 0, style_of(INK_BRIGHT), shown);
    *cursor_column = area.column + column;
    area_text(area, column, 0, style_of(INK_BRIGHT), cursor);
}
