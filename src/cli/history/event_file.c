#include "cli/history/event_file.h"

#include <string.h>

// Room for a histogram with all its buckets and the longest tag.
enum { MESSAGE_SIZE = 2 * 8 * EVENT_FILE_BUCKETS + EVENT_FILE_TAG_SIZE + 256 };

// ---- protocol buffers: a key, which says what follows, then the value ---------------------------

enum { WIRE_VARINT = 0, WIRE_DOUBLE = 1, WIRE_BYTES = 2, WIRE_FLOAT = 5 };

typedef struct Message {
    uint8_t bytes[MESSAGE_SIZE];
    size_t length;
} Message;

static void put_byte(Message *message, unsigned byte) {
    if (message->length < sizeof message->bytes)
        message->bytes[message->length++] = (uint8_t)byte;
}

static void put_varint(Message *message, uint64_t value) {
    for (; value > 127; value >>= 7)
        put_byte(message, (unsigned)(value & 127) | 128);
    put_byte(message, (unsigned)value);
}

static void put_key(Message *message, unsigned field, unsigned wire) {
    put_varint(message, field << 3 | wire);
}

static void put_little(Message *message, uint64_t bits, int bytes) {
    for (int i = 0; i < bytes; i++)
        put_byte(message, (unsigned)(bits >> 8 * i & 255));
}

static void put_bits_of_double(Message *message, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_little(message, bits, 8);
}

static void put_double(Message *message, unsigned field, double value) {
    put_key(message, field, WIRE_DOUBLE);
    put_bits_of_double(message, value);
}

static void put_float(Message *message, unsigned field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(message, field, WIRE_FLOAT);
    put_little(message, bits, 4);
}

static void put_bytes(Message *message, unsigned field, const void *bytes, size_t length) {
    put_key(message, field, WIRE_BYTES);
    put_varint(message, length);
    for (size_t i = 0; i < length; i++)
        put_byte(message, ((const uint8_t *)bytes)[i]);
}

static void put_message(Message *message, unsigned field, const Message *inner) {
    put_bytes(message, field, inner->bytes, inner->length);
}

static void put_doubles(Message *message, unsigned field, const double *values, int count) {
    put_key(message, field, WIRE_BYTES);
    put_varint(message, 8 * (uint64_t)count);
    for (int i = 0; i < count; i++)
        put_bits_of_double(message, values[i]);
}

// ---- records ------------------------------------------------------------------------------------

uint32_t event_file_crc(const void *bytes, size_t length) {
    const uint32_t polynomial = 0x82F63B78; // its bits the other way round
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= ((const uint8_t *)bytes)[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    return ~crc;
}

// Turned and shifted, so that the checksum of a record that holds checksums stays one.
static uint32_t masked_crc(const void *bytes, size_t length) {
    uint32_t crc = event_file_crc(bytes, length);
    return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

static void write_record(FILE *out, const Message *message) {
    Message head = {.length = 0}, tail = {.length = 0};
    put_little(&head, message->length, 8);
    put_little(&head, masked_crc(head.bytes, 8), 4);
    put_little(&tail, masked_crc(message->bytes, message->length), 4);
    fwrite(head.bytes, 1, head.length, out);
    fwrite(message->bytes, 1, message->length, out);
    fwrite(tail.bytes, 1, tail.length, out);
}

// ---- events -------------------------------------------------------------------------------------

// Fields by the number that they have in TensorFlow's event.proto and summary.proto.
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SCALAR = 2, VALUE_HISTOGRAM = 5 };
enum {
    HISTOGRAM_LEAST = 1,
    HISTOGRAM_MOST = 2,
    HISTOGRAM_COUNT = 3,
    HISTOGRAM_SUM = 4,
    HISTOGRAM_SQUARES = 5,
    HISTOGRAM_LIMITS = 6,
    HISTOGRAM_COUNTS = 7
};

void event_file_begin(FILE *out, double time) {
    static const char version[] = "brain.Event:2";
    Message event = {.length = 0};
    put_double(&event, EVENT_TIME, time);
    put_bytes(&event, EVENT_VERSION, version, sizeof version - 1);
    write_record(out, &event);
}

static void begin_value(Message *value, const char *tag) {
    value->length = 0;
    put_bytes(value, VALUE_TAG, tag, strnlen(tag, EVENT_FILE_TAG_SIZE));
}

static void write_value(const EventMoment *moment, const Message *value) {
    Message summary = {.length = 0}, event = {.length = 0};
    put_message(&summary, SUMMARY_VALUE, value);
    put_double(&event, EVENT_TIME, moment->time);
    put_key(&event, EVENT_STEP, WIRE_VARINT);
    put_varint(&event, (uint64_t)moment->step);
    put_message(&event, EVENT_SUMMARY, &summary);
    write_record(moment->out, &event);
}

void event_file_scalar(const EventMoment *moment, const char *tag, double value) {
    Message message;
    begin_value(&message, tag);
    put_float(&message, VALUE_SCALAR, (float)value);
    write_value(moment, &message);
}

void event_file_histogram(const EventMoment *moment, const char *tag,
                          const EventHistogram *values) {
    Message histogram = {.length = 0}, message;
    put_double(&histogram, HISTOGRAM_LEAST, values->least);
    put_double(&histogram, HISTOGRAM_MOST, values->most);
    put_double(&histogram, HISTOGRAM_COUNT, values->count);
    put_double(&histogram, HISTOGRAM_SUM, values->sum);
    put_double(&histogram, HISTOGRAM_SQUARES, values->sum_squares);
    put_doubles(&histogram, HISTOGRAM_LIMITS, values->limits, values->buckets);
    put_doubles(&histogram, HISTOGRAM_COUNTS, values->counts, values->buckets);
    begin_value(&message, tag);
    put_message(&message, VALUE_HISTOGRAM, &histogram);
    write_value(moment, &message);
}
