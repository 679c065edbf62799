#include "grad/saved.h"

#include <stdlib.h>

typedef struct NodeList {
    GradNode **nodes; // each once; the later ones are still to be looked at
    int count, room;
} NodeList;

static bool visit(NodeList *list, TensorOrigin *origin) {
    GradNode *node = (GradNode *)origin;
    if (!node || node->visited)
        return true;
    if (list->count == list->room) {
        int room = list->room ? list->room * 2 : 64;
        GradNode **nodes = realloc(list->nodes, (size_t)room * sizeof *nodes);
        if (!nodes)
            return false;
        list->nodes = nodes;
        list->room = room;
    }
    node->visited = true;
    list->nodes[list->count++] = node;
    return true;
}

static bool visit_all(NodeList *list, Tensor *const *roots, int root_count) {
    bool done = true;
    for (int i = 0; done && i < root_count; i++)
        done = visit(list, roots[i]->origin);
    for (int i = 0; done && i < list->count; i++) {
        const GradNode *node = list->nodes[i];
        for (int k = 0; done && k < node->input_count; k++)
            done = visit(list, node->edges[k].node ? &node->edges[k].node->origin : NULL);
    }
    return done;
}

bool graph_list_saved(Tensor *const *roots, int root_count, SavedTensor **saved, int *count,
                      Error *error) {
    NodeList list = {.count = 0};
    bool done = visit_all(&list, roots, root_count);
    *count = 0;
    *saved = done ? malloc(((size_t)list.count * GRAD_MAX_SAVED + 1) * sizeof **saved) : NULL;
    for (int i = 0; i < list.count; i++) {
        GradNode *node = list.nodes[i];
        node->visited = false;
        for (int k = 0; *saved && k < node->saved_count; k++)
            if (node->saved[k])
                (*saved)[(*count)++] = (SavedTensor){node->number, k, node->saved[k]};
    }
    free(list.nodes);
    return *saved || error_fail(error, ERROR_MEMORY, "no memory to list what graphs hold");
}
