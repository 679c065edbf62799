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

static void insert(Prompt *prompt, int key) {
    char bytes[4];
    int length = rune_encode((uint32_t)key, bytes);
    size_t used = strlen(prompt->text);
    if (used + (size_t)length >= sizeof prompt->text)
        return;
    char *at = prompt->text + prompt->cursor;
    memmove(at + length, at, strlen(at) + 1);
    memcpy(at, bytes, (size_t)length);
    prompt->cursor += length;
}

static int word_before(const Prompt *prompt) {
    int at = prompt->cursor;
    while (at > 0 && prompt->text[at - 1] == ' ')
        at--;
    while (at > 0 && prompt->text[at - 1] != ' ')
        at--;
    return at;
}

// The longest beginning that all words share; a space behind the only one.
static void complete(Ui *ui) {
    enum { MOST = 64 };
    Prompt *prompt = &ui->prompt;
    const char *words[MOST];
    int from = 0;
    if (!prompt->complete)
        return;
    prompt->text[prompt->cursor] = 0;
    int count = prompt->complete(ui, prompt->text, &from, words, MOST);
    if (count == 0)
        return;
    size_t shared = strlen(words[0]);
    for (int i = 1; i < count; i++)
        for (size_t j = 0; j < shared; j++)
            if (words[i][j] != words[0][j])
                shared = j;
    snprintf(prompt->text + from, sizeof prompt->text - (size_t)from, "%.*s%s", (int)shared,
             words[0], count == 1 && words[0][shared - 1] != '=' ? " " : "");
    prompt->cursor = (int)strlen(prompt->text);
    if (count > 1) { // what it could be
        char list[MESSAGE_SIZE] = "";
        for (int i = 0; i < count; i++)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s ", words[i]);
        ui_say(ui, INK_DIM, "%s", list);
    }
}

static void finish(Ui *ui, bool take) {
    Prompt prompt = ui->prompt; // what is done may ask again
    ui->prompt.open = false;
    if (take)
        prompt.done(ui, prompt.text);
}

static void note(Prompt *prompt, Ink ink, const char *text) {
    sanitize_line(prompt->note, sizeof prompt->note, text, strlen(text));
    prompt->note_ink = ink;
}

static void take_text(Ui *ui) {
    Error error;
    if (ui->prompt.check && !ui->prompt.check(ui, ui->prompt.text, &error))
        note(&ui->prompt, INK_WARN, error.text);
    else
        finish(ui, true);
}

static void answer(Ui *ui, int key) {
    if (key == 'y' || key == 'Y')
        finish(ui, true);
    else if (key == 'n' || key == 'N' || key == 'q' || key == KEY_CODE_ESCAPE)
        finish(ui, false);
}

void prompt_key(Ui *ui, int key) {
    Prompt *prompt = &ui->prompt;
    int length = (int)strlen(prompt->text);
    prompt->note[0] = 0;
    if (prompt->is_question) {
        answer(ui, key);
        return;
    }
    switch (key) {
    case '\r':
    case '\n':
    case KEY_CODE_ENTER: take_text(ui); break;
    case KEY_CODE_ESCAPE: finish(ui, false); break;
    case KEY_CODE_LEFT: prompt->cursor = step_left(prompt, prompt->cursor); break;
    case KEY_CODE_RIGHT: prompt->cursor = step_right(prompt, prompt->cursor); break;
    case KEY_CODE_CONTROL('A'):
    case KEY_CODE_HOME: prompt->cursor = 0; break;
    case KEY_CODE_CONTROL('E'):
    case KEY_CODE_END: prompt->cursor = length; break;
    case KEY_CODE_BACKSPACE:
        if (length == 0)
            finish(ui, false);
        else
            remove_between(prompt, step_left(prompt, prompt->cursor), prompt->cursor);
        break;
    case KEY_CODE_DELETE:
        remove_between(prompt, prompt->cursor, step_right(prompt, prompt->cursor));
        break;
    case KEY_CODE_CONTROL('U'): remove_between(prompt, 0, prompt->cursor); break;
    case KEY_CODE_CONTROL('W'): remove_between(prompt, word_before(prompt), prompt->cursor); break;
    case '\t': complete(ui); break;
    default:
        if (key >= ' ' && key < KEY_CODE_UP)
            insert(prompt, key);
    }
}

// ---- drawing ------------------------------------------------------------------------------------

void prompt_draw_note(Ui *ui, Area area) {
    const Prompt *prompt = &ui->prompt;
    if (!prompt->note[0])
        return;
    area_fill(area, style_of(INK_TEXT));
    area_text_cut(area, 1, 0, area.width - 2, style_of(prompt->note_ink), prompt->note);
}

void prompt_draw(Ui *ui, Area area, int *cursor_column) {
    enum { ANSWERS = 14 }; // columns of "y yes  n no"
    const Prompt *prompt = &ui->prompt;
    Ink ink = prompt->is_question ? INK_WARN : INK_ACCENT;
    int room = prompt->is_question ? area.width - ANSWERS : area.width * 3 / 4;
    int column = area_text_cut(area, 1, 0, room, style_bold(ink), prompt->label) + 1;
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
