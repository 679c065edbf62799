#include "run/vitals.h"

#include "base/clock.h"

static void look(Vitals *vitals) {
    vitals->device->backend->readings(vitals->device, &vitals->now);
    vitals->at = clock_seconds();
    vitals->most_watts = fmax(vitals->most_watts, reading_of(&vitals->now, READING_POWER));
    vitals->most_degrees =
        fmax(vitals->most_degrees, reading_of(&vitals->now, READING_TEMPERATURE));
}

void vitals_begin(Vitals *vitals, Device *device) {
    const double unknown = (double)NAN;
    *vitals = (Vitals){.counter = unknown,
                       .watts = unknown,
                       .joules = unknown,
                       .most_watts = unknown,
                       .most_degrees = unknown};
    if (!device->backend->readings)
        return;
    vitals->device = device;
    look(vitals);
    vitals->counter = reading_of(&vitals->now, READING_ENERGY);
    if (isnan(vitals->counter))
        vitals->watts = reading_of(&vitals->now, READING_POWER);
    vitals->watts_at = vitals->at;
    if (!isnan(vitals->counter) || !isnan(vitals->watts))
        vitals->joules = 0;
}

// A sample that fails is made up for by the next: both ways go on from the last that did not.
void vitals_sample(Vitals *vitals) {
    if (!vitals->device)
        return;
    look(vitals);
    double counter = reading_of(&vitals->now, READING_ENERGY),
           watts = reading_of(&vitals->now, READING_POWER);
    if (!isnan(vitals->counter) && !isnan(counter)) {
        // It begins anew with its driver: what lies between is lost, and with it the sum.
        vitals->joules += counter >= vitals->counter ? counter - vitals->counter : (double)NAN;
        vitals->counter = counter;
    } else if (!isnan(vitals->watts) && !isnan(watts)) {
        vitals->joules += (vitals->watts + watts) / 2 * (vitals->at - vitals->watts_at);
        vitals->watts = watts;
        vitals->watts_at = vitals->at;
    }
}

void vitals_leave_out(Vitals *vitals) {
    const double before = vitals->joules;
    vitals_sample(vitals);
    if (!isnan(vitals->joules))
        vitals->joules = before;
}
