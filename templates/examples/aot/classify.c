/* SPDX-License-Identifier: Apache-2.0 */
/* classify IMAGES LABELS [COUNT]: reads IDX files such as MNIST's or those of `mnist --write-data`, recognises the digit
 * in each image, and draws the first COUNT (3). It links the code of digits.hlo, which Collet has compiled, and the C
 * library: no runtime, no allocation. Exit code: 0; 1 where fewer than nine in ten images are recognised; 2 for files
 * that cannot be read. */
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

#include "digits.h"

enum { kSide = 28 };

static uint32_t read_number(FILE* file) {
  unsigned char bytes[4] = {0, 0, 0, 0};
  if (fread(bytes, 1, sizeof bytes, file) != sizeof bytes) return 0;
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void draw(const uint8_t image[kSide][kSide], int32_t digit, const float likelihood[10]) {
  for (int y = 0; y < kSide; y += 2) {
    for (int x = 0; x < kSide; ++x) putchar(" .:*#"[(image[y][x] + image[y + 1][x]) * 4 / 510]);
    putchar('\n');
  }
  printf("it is a %d, by %.1f %%\n\n", (int)digit, 100.0 * (double)likelihood[digit]);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: classify IMAGES LABELS [COUNT]\n");
    return 2;
  }
  FILE *images = fopen(argv[1], "rb"), *labels = fopen(argv[2], "rb");
  if (!images || !labels || read_number(images) != 0x803 || read_number(labels) != 0x801) {
    fprintf(stderr, "classify: %s and %s are no IDX files of images and labels\n", argv[1], argv[2]);
    return 2;
  }
  const uint32_t count = read_number(images);
  if (count == 0 || read_number(labels) != count || read_number(images) != kSide || read_number(images) != kSide) {
    fprintf(stderr, "classify: the files do not hold images of 28 x 28 pixels, with a label for each\n");
    return 2;
  }
  const long drawn = argc > 3 ? strtol(argv[3], NULL, 10) : 3;
  static alignas(64) char workspace[DIGITS_WORKSPACE_BYTES];
  uint8_t image[kSide][kSide];
  float likelihood[10];
  int32_t digit;
  const struct digits_arguments arguments = {&image[0][0]};
  const struct digits_results results = {likelihood, &digit};
  uint32_t right = 0;
  for (uint32_t i = 0; i < count; ++i) {
    int label = fgetc(labels);
    if (label == EOF || fread(image, 1, sizeof image, images) != sizeof image) {
      fprintf(stderr, "classify: the files end at image %u\n", i);
      return 2;
    }
    digits(&arguments, &results, workspace);
    if ((long)i < drawn) draw(image, digit, likelihood);
    right += digit == label;
  }
  printf("%u of %u images are recognised\n", right, count);
  fclose(images);
  fclose(labels);
  return (uint64_t)right * 10 >= (uint64_t)count * 9 ? 0 : 1;
}
