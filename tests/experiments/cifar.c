// cifar PICTURES LABELS: records of CIFAR-10's binary batches, to standard output, of what
// Fashion-MNIST keeps in its two files, unpacked: pictures of 28 x 28 greys become 32 x 32 in three
// colours.
#include <stdio.h>

enum { SIDE = 28, WIDE = 32, PICTURES_HEAD = 16, LABELS_HEAD = 8 };

int main(int count, char **names) {
    unsigned char grey[SIDE * SIDE], record[1 + 3 * WIDE * WIDE];
    FILE *pictures = count == 3 ? fopen(names[1], "rb") : NULL;
    FILE *labels = count == 3 ? fopen(names[2], "rb") : NULL;
    if (!pictures || !labels || fseek(pictures, PICTURES_HEAD, SEEK_SET) != 0 ||
        fseek(labels, LABELS_HEAD, SEEK_SET) != 0)
        return 1;
    while (fread(grey, sizeof grey, 1, pictures) == 1 && fread(record, 1, 1, labels) == 1) {
        unsigned char *red = record + 1, *green = red + WIDE * WIDE, *blue = green + WIDE * WIDE;
        for (int i = 0; i < WIDE * WIDE; i++) {
            const int y = i / WIDE * SIDE / WIDE, x = i % WIDE * SIDE / WIDE;
            red[i] = grey[y * SIDE + x];
            green[i] = (unsigned char)(red[i] / 2);
            blue[i] = (unsigned char)(255 - red[i]);
        }
        if (fwrite(record, sizeof record, 1, stdout) != 1)
            return 1;
    }
    return fclose(stdout) != 0;
}
