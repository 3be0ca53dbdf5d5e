// SPDX-License-Identifier: Apache-2.0
// Implements mma and ldmatrix: products of small matrices by the 32 threads of a warp, and the loads of their operands.
// The figures of fragments in the PTX manual reduce to one formula: a register holds `per` elements that are neighbours
// along k; with group = lane / 4 and member = lane % 4, register r of A has row group + 8 * (r & 1) and k = (r / 2) * 4
// * per + member * per, register r of B has column group and k = r * 4 * per + member * per. Element i of C has row
// group + 8 * (i / 2) and column 2 * member + (i & 1).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "reference_backends/gpu/emulator/numeric.h"
#include "reference_backends/gpu/emulator/support.h"

namespace collet::gpu::emulator {
namespace {

/// Kind of a meeting in addition to those of warp.cc; meetings for mma use the instruction's code as kind.
constexpr uint32_t kLdmatrix = 64;

struct LdmatrixData {
  uint64_t address;
  uint32_t* out;
  uint32_t line;
};

void load_matrices(Worker& w, Meeting& m) {
  const unsigned count = m.key >> 8 & 7;
  const bool transposed = m.key >> 8 & 8;
  uint16_t rows[32][8];
  for (unsigned lane = 0; lane < 8 * count; ++lane) {
    const auto& d = *static_cast<LdmatrixData*>(m.data[lane]);
    Thread& t = w.thread(m.warp * 32 + lane);
    if (d.address % 16) w.fail(t, d.line, CUDA_ERROR_MISALIGNED_ADDRESS, "the row's address is no multiple of 16");
    std::memcpy(rows[lane], check_access(t, d.address, Space::kShared, AccessKind::kRead, 16, d.line), 16);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint32_t* const out = static_cast<LdmatrixData*>(m.data[lane])->out;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned major = lane / 4, minor = lane % 4 * 2;
      const auto element = [&](unsigned e) -> uint32_t {
        return transposed ? rows[8 * i + minor + e][major] : rows[8 * i + major][minor + e];
      };
      out[i] = element(0) | element(1) << 16;
    }
  }
}

struct MmaData {
  const uint32_t* in;
  uint32_t* out;
};

bool is_integer(Type t) {
  return t == Type::kS8 || t == Type::kU8;
}

Format format_of(Type t) {
  switch (t) {
    case Type::kF16:
      return Format::kF16;
    case Type::kBf16:
      return Format::kBf16;
    case Type::kTf32:
      return Format::kTf32;
    case Type::kE4m3:
      return Format::kE4m3;
    case Type::kE5m2:
      return Format::kE5m2;
    case Type::kS8:
      return Format::kS8;
    case Type::kU8:
      return Format::kU8;
    default:
      return Format::kF32;
  }
}

double element(Type t, const uint32_t* registers, unsigned r, unsigned e) {
  if (t == Type::kF64) {
    uint64_t bits = 0;
    std::memcpy(&bits, registers + 2 * r, 8);
    return std::bit_cast<double>(bits);
  }
  const unsigned width = bits_of(t);
  uint32_t value = registers[r] >> (e * width);
  if (width < 32) value &= (1u << width) - 1;
  if (t == Type::kS8) return static_cast<int8_t>(value);
  if (t == Type::kU8) return value;
  if (t == Type::kTf32) return std::bit_cast<float>(value & 0xffffe000);
  return to_double(value, format_of(t));
}

void multiply_all(Worker& w, Meeting& m) {
  const MmaShape s = MmaShape::of_code(m.key);
  if (m.arrived != UINT32_MAX) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if (m.arrived >> lane & 1) {
        w.fail(w.thread(m.warp * 32 + lane), m.line, CUDA_ERROR_LAUNCH_FAILED, "mma needs all 32 threads of the warp");
      }
    }
  }
  static thread_local double a[16][32], b[32][8], sums[16][8];
  const unsigned a_words = s.registers('a'), b_words = s.registers('b');
  const unsigned unit = s.a == Type::kF64 ? 2 : 1;
  const unsigned per = s.a == Type::kF64 ? 1 : 32 / bits_of(s.a);
  const bool tall = s.m == 16;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const uint32_t* const in = static_cast<MmaData*>(m.data[lane])->in;
    const unsigned group = lane / 4, member = lane % 4;
    for (unsigned r = 0; r < a_words / unit; ++r) {
      for (unsigned e = 0; e < per; ++e) {
        const unsigned row = group + (tall ? 8 * (r & 1) : 0), k = (tall ? r / 2 : r) * 4 * per + member * per + e;
        a[row][k] = element(s.a, in, r, e);
      }
    }
    for (unsigned r = 0; r < b_words / unit; ++r) {
      for (unsigned e = 0; e < per; ++e) b[r * 4 * per + member * per + e][group] = element(s.b, in + a_words, r, e);
    }
    const uint32_t* const c = in + a_words + b_words;
    for (unsigned i = 0; i < s.m * 8 / 32; ++i) {
      double& sum = sums[group + 8 * (i / 2)][2 * member + (i & 1)];
      switch (s.accumulator) {
        case Type::kF16:
          sum = to_double(c[i / 2] >> (16 * (i & 1)) & 0xffff, Format::kF16);
          break;
        case Type::kF64:
          sum = element(Type::kF64, c, i, 0);
          break;
        case Type::kS32:
          sum = static_cast<int32_t>(c[i]);
          break;
        default:
          sum = std::bit_cast<float>(c[i]);
          break;
      }
    }
  }
  // Products of all types except f64 are exact. Their sum is rounded once more than in hardware.
  for (unsigned row = 0; row < s.m; ++row) {
    for (unsigned k = 0; k < s.k; ++k) {
      for (unsigned n = 0; n < 8; ++n) {
        sums[row][n] =
            s.a == Type::kF64 ? std::fma(a[row][k], b[k][n], sums[row][n]) : sums[row][n] + a[row][k] * b[k][n];
      }
    }
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint32_t* const out = static_cast<MmaData*>(m.data[lane])->out;
    const unsigned group = lane / 4, member = lane % 4;
    for (unsigned i = 0; i < s.m * 8 / 32; ++i) {
      const double sum = sums[group + 8 * (i / 2)][2 * member + (i & 1)];
      switch (s.result) {
        case Type::kF16: {
          const auto half = static_cast<uint32_t>(from_double(sum, Format::kF16));
          out[i / 2] = i & 1 ? out[i / 2] | half << 16 : half;
          break;
        }
        case Type::kF64: {
          const auto bits = std::bit_cast<uint64_t>(sum);
          std::memcpy(out + 2 * i, &bits, 8);
          break;
        }
        case Type::kS32: {
          auto whole = static_cast<int64_t>(sum);
          if (s.saturate) whole = std::min<int64_t>(std::max<int64_t>(whole, INT32_MIN), INT32_MAX);
          out[i] = static_cast<uint32_t>(whole);
          break;
        }
        default:
          out[i] = std::bit_cast<uint32_t>(static_cast<float>(sum));
          break;
      }
    }
  }
}

}  // namespace

unsigned MmaShape::registers(char matrix) const {
  const auto any = [](unsigned v, std::initializer_list<unsigned> list) {
    return std::find(list.begin(), list.end(), v) != list.end();
  };
  bool known = false;
  switch (a) {
    case Type::kF16:
      known = b == a && m == 16 && any(k, {8, 16}) && (accumulator == Type::kF16 || accumulator == Type::kF32) &&
              result == accumulator;
      break;
    case Type::kBf16:
      known = b == a && m == 16 && any(k, {8, 16}) && accumulator == Type::kF32 && result == accumulator;
      break;
    case Type::kTf32:
      known = b == a && m == 16 && any(k, {4, 8}) && accumulator == Type::kF32 && result == accumulator;
      break;
    case Type::kE4m3:
    case Type::kE5m2:
      known = (b == Type::kE4m3 || b == Type::kE5m2) && m == 16 && k == 32 && accumulator == Type::kF32 &&
              result == accumulator;
      break;
    case Type::kF64:
      known = b == a && (m == 8 ? k == 4 : any(k, {4, 8, 16})) && accumulator == Type::kF64 && result == accumulator;
      break;
    case Type::kS8:
    case Type::kU8:
      known =
          is_integer(b) && (m == 8 ? k == 16 : any(k, {16, 32})) && accumulator == Type::kS32 && result == accumulator;
      break;
    default:
      break;
  }
  if (!known) return 0;
  switch (matrix) {
    case 'a':
      return m * k * bits_of(a) / 1024;
    case 'b':
      return 8 * k * bits_of(b) / 1024;
    case 'c':
      return m * 8 * bits_of(accumulator) / 1024;
    default:
      return m * 8 * bits_of(result) / 1024;
  }
}

extern "C" {

void collet_emu_ldmatrix(Thread* t, uint32_t code, uint64_t address, uint32_t* out, uint32_t line) {
  LdmatrixData d{address, out, line};
  Warp& warp = t->worker->warp(t->warp);
  if (warp.present != UINT32_MAX || warp.exited) {
    t->worker->fail(*t, line, CUDA_ERROR_LAUNCH_FAILED, "ldmatrix needs all 32 threads of the warp");
  }
  t->worker->meet(*t, kLdmatrix | code << 8, UINT32_MAX, &d, &load_matrices, line);
}

void collet_emu_mma(Thread* t, uint32_t code, const uint32_t* in, uint32_t* out, uint32_t line) {
  MmaData d{in, out};
  t->worker->meet(*t, code, UINT32_MAX, &d, &multiply_all, line);
}
}

}  // namespace collet::gpu::emulator
