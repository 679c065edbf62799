// What scripts compute between steps only to look at it, without saying so by run:evaluate: told
// from training by what comes after it.
#include "lua/bind/bind.h"

void bind_leave_evaluation_out(Session *session) {
    if (session->evaluations == 0)
        return;
    session->fresh_samples = 0;
    session->judged++;
    session->evaluations = 0;
    run_leave_out(session->run, session->learnt_at);
}

void bind_training_begins(Session *session) {
    const Run *run = session->run;
    const bool uses_loaders = run->samples > 0 || run->step == 0;
    if (session->evaluations == 0 || (session->fresh_samples > 0 && uses_loaders))
        return;
    const bool is_in_each = run->step > 0 && session->looked_before == run->step;
    session->looked_before = run->step + 1;
    if (is_in_each)
        session->evaluations = 0;
    else
        bind_leave_evaluation_out(session);
}
