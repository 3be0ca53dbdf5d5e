#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Iterations of the loop that follows do not depend on each other. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#pragma STDC FP_CONTRACT OFF
#endif

static inline uint32_t bits_of_f32(float x) {
  uint32_t i;
  memcpy(&i, &x, sizeof i);
  return i;
}

static inline float f32_of_bits(uint32_t i) {
  float x;
  memcpy(&x, &i, sizeof x);
  return x;
}

static inline float tanh_f32(float x) {
  const float x0 = fabsf(x);
  const float x1 = x0 > 10.0f ? 10.0f : x0;
  const float x2 = x1 * 2.88539f + 12583039.0f;
  const float x3 = f32_of_bits(bits_of_f32(x2) << 23);
  const float x4 = (x2 - 12583039.0f) * 0.5f;
  const float x5 = x4 * 0.00021219444f + (x4 * -0.6933594f + x1);
  const float x6 = x3 * x5;
  const float x7 = x6 + (x3 * 0.5f + -0.5f);
  const float x8 =
      x6 * x5 * (x5 * (x5 * x5 * (x5 * 0.044357006f + 0.1338554f) + (x5 * 0.33333796f + 0.666662f)) + 1.0f);
  const float x9 = 1.0f / (x8 + (x7 + 1.0f));
  const float x10 = 1.0f - x9;
  return copysignf(x9 * (x9 * x8 + (x9 * x7 + -x10)) + x10, x);
}

/* divide */
static void kernel0(char* const* buffers, int64_t begin, int64_t end) {
  const float* const b0 = (const float*)buffers[0];
  float* const b1 = (float*)buffers[1];
  INDEPENDENT
  for (int64_t i0 = begin; i0 < end; ++i0) {
    const float x0 = b0[i0];
    b1[i0] = x0 / tanh_f32(x0);
  }
}

void program(char* const* slots);

void program(char* const* slots) {
  {
    char* const places[] = {slots[0], slots[1]};
    kernel0(places, 0, 64);
  }
  (void)slots;
}
