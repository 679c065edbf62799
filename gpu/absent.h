// gpu/absent.h: operations that have no kernel for the card yet. Who writes one deletes its line
// here.
#pragma once

#define gpu_batch_norm          NULL
#define gpu_batch_norm_backward NULL
#define gpu_batch_norm_infer    NULL
#define gpu_batch_norm_track    NULL
#define gpu_layer_norm          NULL
#define gpu_layer_norm_backward NULL
#define gpu_group_norm          NULL
#define gpu_group_norm_backward NULL
