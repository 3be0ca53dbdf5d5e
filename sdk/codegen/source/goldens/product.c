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

static inline float f32_of_bits(uint32_t i) {
  float x;
  memcpy(&x, &i, sizeof x);
  return x;
}

static inline float f32_of_bf16(uint32_t i) {
  return f32_of_bits(i << 16);
}

static inline uint32_t bits_of_f32(float x) {
  uint32_t i;
  memcpy(&i, &x, sizeof i);
  return i;
}

static inline uint16_t bf16_of_f32(float x) {
  const uint32_t n0 = bits_of_f32(x);
  const uint32_t n1 = n0 >> 16;
  const uint32_t n2 = (n0 + (n1 & 1u) + 32767u) >> 16;
  const uint32_t n3 = (n1 & 32768u) | 32704u;
  return (uint16_t)(x != x ? n3 : n2);
}

static const int64_t table0[] = {0};

/* The operands of a micro-kernel: c[rows, columns] (+)= a[rows, depth] * b[depth, columns]. Steps are in elements. */
struct tile {
  const char *a, *b;
  char* c;
  int64_t depth, a_step, b_step, c_step, tail, accumulate;
  const char* ahead;
  int64_t ahead_step;
  const char* start;
  int64_t segments;
  const int64_t* offsets;
  int64_t checked_steps;
  int64_t rows;
  char* d;
  char* const* buffers;
  const int64_t* position;
  int64_t row, column;
};

static void micro_f32x8_6x2_accumulates(const struct tile* t) {
  const float* b = (const float*)t->b;
  const int64_t depth = t->depth, a_step = t->a_step, b_step = t->b_step, c_step = t->c_step;
  float sum[6][16];
  for (int64_t j = 0; j < 16; ++j) {
    sum[0][j] = 0;
    sum[1][j] = 0;
    sum[2][j] = 0;
    sum[3][j] = 0;
    sum[4][j] = 0;
    sum[5][j] = 0;
  }
  const float* a = (const float*)t->a;
  for (int64_t k = 0; k < depth; ++k, b += b_step) {
    const float x0 = a[k];
    const float x1 = a[a_step + k];
    const float x2 = a[2 * a_step + k];
    const float x3 = a[3 * a_step + k];
    const float x4 = a[4 * a_step + k];
    const float x5 = a[5 * a_step + k];
    for (int64_t j = 0; j < 16; ++j) {
      const float y = b[j];
      sum[0][j] += x0 * y;
      sum[1][j] += x1 * y;
      sum[2][j] += x2 * y;
      sum[3][j] += x3 * y;
      sum[4][j] += x4 * y;
      sum[5][j] += x5 * y;
    }
  }
  float* const c = (float*)t->c;
  if (t->accumulate) {
    for (int64_t r = 0; r < 6; ++r) {
      for (int64_t j = 0; j < 16; ++j) {
        sum[r][j] += (float)c[r * c_step + j];
      }
    }
  }
  for (int64_t r = 0; r < 6; ++r) {
    INDEPENDENT
    for (int64_t j = 0; j < 16; ++j) {
      c[r * c_step + j] = sum[r][j];
    }
  }
}

static void micro_f32x8_6x1_masked_accumulates_tail_2(const struct tile* t) {
  const float* b = (const float*)t->b;
  const int64_t depth = t->depth, a_step = t->a_step, b_step = t->b_step, c_step = t->c_step;
  float sum[6][2];
  for (int64_t j = 0; j < 2; ++j) {
    sum[0][j] = 0;
    sum[1][j] = 0;
    sum[2][j] = 0;
    sum[3][j] = 0;
    sum[4][j] = 0;
    sum[5][j] = 0;
  }
  const float* a = (const float*)t->a;
  for (int64_t k = 0; k < depth; ++k, b += b_step) {
    const float x0 = a[k];
    const float x1 = a[a_step + k];
    const float x2 = a[2 * a_step + k];
    const float x3 = a[3 * a_step + k];
    const float x4 = a[4 * a_step + k];
    const float x5 = a[5 * a_step + k];
    for (int64_t j = 0; j < 2; ++j) {
      const float y = b[j];
      sum[0][j] += x0 * y;
      sum[1][j] += x1 * y;
      sum[2][j] += x2 * y;
      sum[3][j] += x3 * y;
      sum[4][j] += x4 * y;
      sum[5][j] += x5 * y;
    }
  }
  float* const c = (float*)t->c;
  if (t->accumulate) {
    for (int64_t r = 0; r < 6; ++r) {
      for (int64_t j = 0; j < 2; ++j) {
        sum[r][j] += (float)c[r * c_step + j];
      }
    }
  }
  for (int64_t r = 0; r < 6; ++r) {
    INDEPENDENT
    for (int64_t j = 0; j < 2; ++j) {
      c[r * c_step + j] = sum[r][j];
    }
  }
}

static void micro_f32x8_4x2_accumulates(const struct tile* t) {
  const float* b = (const float*)t->b;
  const int64_t depth = t->depth, a_step = t->a_step, b_step = t->b_step, c_step = t->c_step;
  float sum[4][16];
  for (int64_t j = 0; j < 16; ++j) {
    sum[0][j] = 0;
    sum[1][j] = 0;
    sum[2][j] = 0;
    sum[3][j] = 0;
  }
  const float* a = (const float*)t->a;
  for (int64_t k = 0; k < depth; ++k, b += b_step) {
    const float x0 = a[k];
    const float x1 = a[a_step + k];
    const float x2 = a[2 * a_step + k];
    const float x3 = a[3 * a_step + k];
    for (int64_t j = 0; j < 16; ++j) {
      const float y = b[j];
      sum[0][j] += x0 * y;
      sum[1][j] += x1 * y;
      sum[2][j] += x2 * y;
      sum[3][j] += x3 * y;
    }
  }
  float* const c = (float*)t->c;
  if (t->accumulate) {
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t j = 0; j < 16; ++j) {
        sum[r][j] += (float)c[r * c_step + j];
      }
    }
  }
  for (int64_t r = 0; r < 4; ++r) {
    INDEPENDENT
    for (int64_t j = 0; j < 16; ++j) {
      c[r * c_step + j] = sum[r][j];
    }
  }
}

static void micro_f32x8_4x1_masked_accumulates_tail_2(const struct tile* t) {
  const float* b = (const float*)t->b;
  const int64_t depth = t->depth, a_step = t->a_step, b_step = t->b_step, c_step = t->c_step;
  float sum[4][2];
  for (int64_t j = 0; j < 2; ++j) {
    sum[0][j] = 0;
    sum[1][j] = 0;
    sum[2][j] = 0;
    sum[3][j] = 0;
  }
  const float* a = (const float*)t->a;
  for (int64_t k = 0; k < depth; ++k, b += b_step) {
    const float x0 = a[k];
    const float x1 = a[a_step + k];
    const float x2 = a[2 * a_step + k];
    const float x3 = a[3 * a_step + k];
    for (int64_t j = 0; j < 2; ++j) {
      const float y = b[j];
      sum[0][j] += x0 * y;
      sum[1][j] += x1 * y;
      sum[2][j] += x2 * y;
      sum[3][j] += x3 * y;
    }
  }
  float* const c = (float*)t->c;
  if (t->accumulate) {
    for (int64_t r = 0; r < 4; ++r) {
      for (int64_t j = 0; j < 2; ++j) {
        sum[r][j] += (float)c[r * c_step + j];
      }
    }
  }
  for (int64_t r = 0; r < 4; ++r) {
    INDEPENDENT
    for (int64_t j = 0; j < 2; ++j) {
      c[r * c_step + j] = sum[r][j];
    }
  }
}

/* dot */
static void kernel0(char* const* buffers, int64_t begin, int64_t end) {
  const uint16_t* const b0 = (const uint16_t*)buffers[0];
  float* const b1 = (float*)buffers[1];
  for (int64_t i0 = begin; i0 < end; ++i0) {
    for (int64_t i1 = 0; i1 < 30; ++i1) {
      INDEPENDENT
      for (int64_t i2 = 0; i2 < 16; ++i2) {
        b1[480 * i0 + 16 * i1 + i2] = f32_of_bf16((uint64_t)(16 * i0 + i2) < 50u ? b0[16 * i0 + 50 * i1 + i2] : 0);
      }
    }
  }
}

/* dot */
static void kernel1(char* const* buffers, int64_t begin, int64_t end) {
  const uint16_t* const b0 = (const uint16_t*)buffers[0];
  float* const b1 = (float*)buffers[1];
  for (int64_t i0 = begin; i0 < end; ++i0) {
    INDEPENDENT
    for (int64_t i1 = 0; i1 < 30; ++i1) {
      b1[48 * i0 + i1] = f32_of_bf16(b0[30 * i0 + i1]);
    }
  }
}

/* dot */
static void kernel6(char* const* buffers, int64_t begin, int64_t end) {
  const float* const b0 = (const float*)buffers[0];
  uint16_t* const b1 = (uint16_t*)buffers[1];
  INDEPENDENT
  for (int64_t i0 = begin; i0 < end; ++i0) {
    b1[i0] = bf16_of_f32(f32_of_bf16(bf16_of_f32(b0[i0])));
  }
}

/* dot */
static void product0(char* const* buffers, int64_t begin, int64_t end, int64_t worker) {
  struct tile t;
  t.a_step = 48;
  t.b_step = 16;
  t.c_step = 50;
  t.tail = 2;
  char* const at0 = buffers[3] + worker * 8128;
  char* const at1 = buffers[2];
  for (int64_t i0 = begin; i0 < end; ++i0) {
    const int64_t n0 = i0 - i0;
    const int64_t n1 = n0 * 7;
    const int64_t n2 = n0 + 1;
    const int64_t n3 = n2 * 7;
    const int64_t n4 = n0 * 4;
    const int64_t n5 = n2 * 4;
    if (n1 < n3) {
      if (n4 < n5) {
        const int64_t n6 = n1 * 6;
        const int64_t n7 = n3 * 6;
        const int64_t n8 = table0[i0];
        const int64_t n9 = n8 * 40 + n6;
        const int64_t n10 = n9 + ((n7 < 40 ? n7 : 40) - n6);
        char* const at2 = at0 - n9 * 192;
        {
          char* const places[] = {buffers[0], at2};
          kernel1(places, n9, n10);
        }
        char* const at3 = buffers[1] + n8 * 1920 * 4;
        for (int64_t i1 = 0; i1 < 1; ++i1) {
          const int64_t n11 = i1 * 32;
          const int64_t n12 = 30 - n11;
          t.depth = 32 < n12 ? 32 : n12;
          t.accumulate = i1 == 0 ? 0 : 1;
          for (int64_t i2 = n4; i2 < n5; ++i2) {
            t.checked_steps = 0;
            t.b = at3 + (i2 * 30 + n11) * 16 * 4;
            const int64_t n13 = i2 * 16;
            const bool p0 = n13 > 34;
            t.column = n13;
            for (int64_t i3 = n1; i3 < n3; ++i3) {
              const bool p1 = i3 == 6;
              const int64_t n14 = i3 * 6;
              t.a = at0 + ((i3 - n1) * 288 + n11) * 4;
              t.c = at1 + (n8 + n14 * 50 + n13) * 4;
              t.row = n14;
              t.rows = p1 ? 4 : 6;
              if (!p1 && !p0) {
                micro_f32x8_6x2_accumulates(&t);
              }
              if (!p1 && p0) {
                micro_f32x8_6x1_masked_accumulates_tail_2(&t);
              }
              if (p1 && !p0) {
                micro_f32x8_4x2_accumulates(&t);
              }
              if (p1 && p0) {
                micro_f32x8_4x1_masked_accumulates_tail_2(&t);
              }
            }
          }
        }
      }
    }
  }
}

void program(char* const* slots);

void program(char* const* slots) {
  {
    char* const places[] = {slots[1], slots[3] + 16256};
    kernel0(places, 0, 4);
  }
  {
    char* const places[] = {slots[0], slots[3] + 16256, slots[3] + 8256, slots[3] + 128};
    product0(places, 0, 1, 0);
  }
  {
    char* const places[] = {slots[3] + 8256, slots[2]};
    kernel6(places, 0, 2000);
  }
  (void)slots;
}
