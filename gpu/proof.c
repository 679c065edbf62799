#include "gpu/proof.h"

#include "gpu/backend.h"
#include "gpu/gpu.h"
#include "gpu/launch.h"

// The largest difference from our own results that the order of sums and rounding explain, as a
// share of all of them taken together: single ones may cancel. Factors that were rounded to TF32 on
// the way differ by more. A product that was rounded to bf16 twice differs by 3e-3, one that was
// summed in another order by a tenth of that. In fp16 both lie an eighth as far, and too close to
// each other to be told apart.
static const double most_difference[PROOF_KINDS][FORMAT_COUNT] = {
    [PROOF_OF_PRODUCT] = {[FORMAT_FP32] = 1e-4, [FORMAT_BF16] = 1.5e-3, [FORMAT_FP16] = 1.0 / 512},
    [PROOF_OF_GRAPH] = {[FORMAT_FP32] = 1e-4, [FORMAT_BF16] = 1.0 / 64, [FORMAT_FP16] = 1.0 / 512},
    [PROOF_OF_TF32] =
        {[FORMAT_FP32] = 1.0 / 256, [FORMAT_BF16] = 1.0 / 64, [FORMAT_FP16] = 1.0 / 256},
};

Proof gpu_prove(Device *device, ProofKind kind, const ProofArguments *results, Error *error) {
    Gpu *gpu = gpu_of(device);
    const double most = most_difference[kind][results->format];
    ProofDistance found;
    if (!gpu_launch_proof(device, (GpuGrid){.x = 1}, results, error))
        return PROOF_FAILED;
    device->waits++;
    gpu_backend.read(device, &found, results->distance, sizeof found);
    if (gpu->failure.code != ERROR_NONE)
        return gpu_has_failed(gpu, error) ? PROOF_OPEN : PROOF_FAILED;
    // Written so that what is no number refutes.
    if (!(found.unlike == 0 && found.difference <= most * most * found.expected))
        return PROOF_REFUTED;
    return found.expected > 0 ? PROOF_GIVEN : PROOF_OPEN;
}
