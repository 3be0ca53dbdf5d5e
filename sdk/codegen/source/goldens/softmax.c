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

static inline float max_f32(float x, float y) {
  const float x0 = (x > y) | (x != x) ? x : y;
  const float x1 = f32_of_bits(bits_of_f32(x) & bits_of_f32(y));
  return x == y ? x1 : x0;
}

static inline float exp_f32(float x) {
  const float x0 = x > 90.0f ? 90.0f : x;
  const float x1 = x0 < -105.0f ? -105.0f : x0;
  const float x2 = x1 * 1.442695f + 12582912.0f - 12582912.0f;
  const float x3 = x2 * 0.00021219444f + (x2 * -0.6933594f + x1);
  const float x4 = (((0.00019915402f * x3 + 0.0013947388f) * x3 + 0.00833327f) * x3 + 0.04166625f) * x3 + 0.16666667f;
  const uint32_t n0 = bits_of_f32(x2 + 12583166.0f);
  const uint32_t n1 = (uint32_t)((int32_t)n0 >> 1);
  const float x5 = (x3 * x3 * (x4 * x3 + 0.5f) + x3 + 1.0f) * f32_of_bits(n1 << 23) * f32_of_bits((n0 - n1) << 23);
  return x5;
}

/* reduce, exponential, reduce, divide */
static void kernel0(char* const* buffers, int64_t begin, int64_t end) {
  const float* const b0 = (const float*)buffers[0];
  float* const b1 = (float*)buffers[1];
  for (int64_t i0 = begin; i0 < end; ++i0) {
    float kept0[200];
    float fold0[32];
    INDEPENDENT
    for (int64_t l = 0; l < 32; ++l) {
      fold0[l] = -INFINITY;
    }
    for (int64_t j1 = 0; j1 < 192; j1 += 32) {
      INDEPENDENT
      for (int64_t l = 0; l < 32; ++l) {
        fold0[l] = max_f32(fold0[l], b0[200 * i0 + (j1 + l)]);
      }
    }
    for (int64_t l = 0; l < 8; ++l) {
      fold0[l] = max_f32(fold0[l], b0[200 * i0 + (l + 192)]);
    }
    for (int64_t half = 16; half > 0; half /= 2) {
      for (int64_t l = 0; l < half; ++l) {
        fold0[l] = max_f32(fold0[l], fold0[l + half]);
      }
    }
    const float x0 = max_f32(fold0[0], -INFINITY);
    float sum0[32];
    INDEPENDENT
    for (int64_t l = 0; l < 32; ++l) {
      sum0[l] = -0.0f;
    }
    for (int64_t j1 = 0; j1 < 192; j1 += 32) {
      INDEPENDENT
      for (int64_t l = 0; l < 32; ++l) {
        const float x1 = exp_f32(b0[200 * i0 + (j1 + l)] - x0);
        kept0[(j1 + l)] = x1;
        sum0[l] = sum0[l] + x1;
      }
    }
    for (int64_t l = 0; l < 8; ++l) {
      const float x2 = exp_f32(b0[200 * i0 + (l + 192)] - x0);
      kept0[(l + 192)] = x2;
      sum0[l] = sum0[l] + x2;
    }
    for (int64_t half = 16; half > 0; half /= 2) {
      for (int64_t l = 0; l < half; ++l) {
        sum0[l] = sum0[l] + sum0[l + half];
      }
    }
    const float x3 = sum0[0] + 0.0f;
    INDEPENDENT
    for (int64_t i1 = 0; i1 < 200; ++i1) {
      b1[200 * i0 + i1] = kept0[i1] / x3;
    }
  }
}

void program(char* const* slots);

void program(char* const* slots) {
  {
    char* const places[] = {slots[0], slots[1]};
    kernel0(places, 0, 6);
  }
  (void)slots;
}
