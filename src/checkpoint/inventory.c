#include "checkpoint/inventory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void inventory_clear(Inventory *inventory) {
    for (int i = 0; i < inventory->named_count; i++) {
        free(inventory->named[i].name);
        tensor_release(inventory->named[i].tensor);
    }
    free(inventory->named);
    for (int i = 0; i < MEMBER_KINDS; i++)
        free(inventory->lists[i].members);
    journal_clear(&inventory->journal);
    *inventory = (Inventory){.named_count = 0};
}

// Room for one more element of a list; NULL where there is no memory.
static void *grow(void *list, int count, int *room, size_t size, Error *error) {
    if (count < *room)
        return list;
    int next = *room ? *room * 2 : 16;
    void *moved = realloc(list, (size_t)next * size);
    if (moved)
        *room = next;
    else
        error_fail(error, ERROR_MEMORY, "no memory to keep track of what a checkpoint holds");
    return moved;
}

bool inventory_add(Inventory *inventory, MemberKind kind, void *member, Error *error) {
    MemberList *list = &inventory->lists[kind];
    void **members = grow(list->members, list->count, &list->room, sizeof *members, error);
    if (!members)
        return false;
    list->members = members;
    members[list->count++] = member;
    return true;
}

void inventory_remove(Inventory *inventory, MemberKind kind, const void *member) {
    MemberList *list = &inventory->lists[kind];
    for (int i = 0; i < list->count; i++)
        if (list->members[i] == member)
            list->members[i] = NULL;
}

const NamedTensor *inventory_find(const Inventory *inventory, const Tensor *tensor) {
    for (int i = 0; i < inventory->named_count; i++)
        if (inventory->named[i].tensor == tensor)
            return &inventory->named[i];
    return NULL;
}

static bool is_taken(const Inventory *inventory, const char *name, const Tensor *by_other_than) {
    for (int i = 0; i < inventory->named_count; i++)
        if (inventory->named[i].tensor != by_other_than &&
            strcmp(inventory->named[i].name, name) == 0)
            return true;
    return false;
}

// The name, or the first of its numbered forms that is free. The caller frees it.
static char *free_name(const Inventory *inventory, const char *name, const Tensor *tensor) {
    enum { NUMBER_SIZE = 16 };
    char *text = malloc(strlen(name) + NUMBER_SIZE);
    if (!text)
        return NULL;
    strcpy(text, name);
    for (int i = 2; is_taken(inventory, text, tensor); i++)
        snprintf(text + strlen(name), NUMBER_SIZE, "#%d", i);
    return text;
}

bool inventory_name(Inventory *inventory, const char *name, Tensor *tensor, bool is_buffer,
                    Error *error) {
    NamedTensor *named = (NamedTensor *)inventory_find(inventory, tensor);
    char *text = free_name(inventory, name, tensor);
    if (!text)
        return error_fail(error, ERROR_MEMORY, "no memory to name %s", name);
    if (named) {
        free(named->name);
        named->name = text;
        return true;
    }
    NamedTensor *list =
        grow(inventory->named, inventory->named_count, &inventory->named_room, sizeof *list, error);
    if (!list) {
        free(text);
        return false;
    }
    inventory->named = list;
    list[inventory->named_count++] = (NamedTensor){text, tensor_hold(tensor), is_buffer};
    return true;
}
