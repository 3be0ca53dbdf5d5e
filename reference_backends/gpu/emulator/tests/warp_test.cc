// SPDX-License-Identifier: Apache-2.0
// Tests what the threads of a warp do together: shuffles, votes, matrix products; and asynchronous copies.
#include <bit>
#include <cmath>
#include <functional>

#include "reference_backends/gpu/emulator/tests/gpu.h"
#include "reference_backends/gpu/emulator/tests/ptxas.h"

namespace collet::gpu::testing_only {
namespace {

using WarpTest = GpuTest;

/// Returns a kernel for 32 threads: `body` computes %r9 from the lane number %r1, and %r9 is stored to out[lane].
std::string lane_kernel(const std::string& body, int sm = 80) {
  return ptx_header(sm) +
         ".visible .entry k(.param .u64 to) {\n.reg .pred %p<8>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<9>;\n"
         "mov.u32 %r1, %tid.x;\nld.param.u64 %rd1, [to];\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd1, %rd1, %rd2;\n" +
         body + "\nst.global.u32 [%rd1], %r9;\nret;\n}\n";
}

struct LaneCase {
  const char* body;
  std::function<uint32_t(uint32_t)> expected;
};

const std::vector<LaneCase>& lane_cases() {
  static const std::vector<LaneCase> list = {
      {"shfl.sync.up.b32 %r9, %r1, 3, 0, -1;", [](uint32_t l) { return l >= 3 ? l - 3 : l; }},
      {"shfl.sync.down.b32 %r9|%p1, %r1, 5, 31, -1;\n@!%p1 mov.u32 %r9, 99;",
       [](uint32_t l) { return l + 5 < 32 ? l + 5 : 99; }},
      {"shfl.sync.bfly.b32 %r9, %r1, 16, 31, -1;", [](uint32_t l) { return l ^ 16; }},
      {"shfl.sync.idx.b32 %r9, %r1, 7, 31, -1;", [](uint32_t) { return 7u; }},
      // Segments of 8 lanes: operand c is 0x1800 | clamp.
      {"shfl.sync.idx.b32 %r9, %r1, 2, 6175, -1;", [](uint32_t l) { return (l & 24) + 2; }},
      {"shfl.sync.up.b32 %r9|%p1, %r1, 1, 6144, -1;\n@!%p1 mov.u32 %r9, 77;",
       [](uint32_t l) { return l % 8 ? l - 1 : 77; }},
      {"setp.lt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r9, %p1, -1;", [](uint32_t) { return 31u; }},
      {"setp.lt.u32 %p1, %r1, 5;\nvote.sync.any.pred %p2, !%p1, -1;\nselp.u32 %r9, 1, 0, %p2;",
       [](uint32_t) { return 1u; }},
      {"setp.lt.u32 %p1, %r1, 5;\nvote.sync.all.pred %p2, %p1, -1;\nselp.u32 %r9, 1, 0, %p2;",
       [](uint32_t) { return 0u; }},
      {"setp.lt.u32 %p1, %r1, 50;\nvote.sync.uni.pred %p2, %p1, -1;\nselp.u32 %r9, 1, 0, %p2;",
       [](uint32_t) { return 1u; }},
      {"shr.u32 %r2, %r1, 3;\nmatch.any.sync.b32 %r9, %r2, -1;", [](uint32_t l) { return 0xffu << (l / 8 * 8); }},
      {"redux.sync.add.u32 %r9, %r1, -1;", [](uint32_t) { return 496u; }},
      {"sub.s32 %r2, %r1, 9;\nredux.sync.min.s32 %r9, %r2, -1;", [](uint32_t) { return static_cast<uint32_t>(-9); }},
      {"sub.s32 %r2, %r1, 9;\nredux.sync.max.u32 %r9, %r2, -1;", [](uint32_t) { return UINT32_MAX; }},
      {"redux.sync.xor.b32 %r9, %r1, -1;", [](uint32_t) { return 0u; }},
      {"mov.u32 %r2, %lanemask_lt;\npopc.b32 %r9, %r2;", [](uint32_t l) { return l; }},
      {"mov.u32 %r9, %lanemask_ge;", [](uint32_t l) { return UINT32_MAX << l; }},
      // Only the lower half of the warp takes part.
      {"mov.u32 %r9, 5;\nsetp.ge.u32 %p1, %r1, 16;\n@%p1 bra $skip;\nshfl.sync.bfly.b32 %r9, %r1, 1, 31, 0xffff;\n"
       "$skip:\nbar.warp.sync -1;",
       [](uint32_t l) { return l < 16 ? l ^ 1 : 5; }},
      {"setp.lt.u32 %p1, %r1, 7;\nbarrier.cta.red.popc.aligned.u32 %r9, 1, %p1;", [](uint32_t) { return 7u; }},
      {"setp.lt.u32 %p1, %r1, 7;\nbar.red.or.pred %p2, 0, 32, %p1;\nselp.u32 %r9, 1, 0, %p2;",
       [](uint32_t) { return 1u; }},
  };
  return list;
}

TEST_F(WarpTest, LanesExchange) {
  for (const LaneCase& c : lane_cases()) {
    SCOPED_TRACE(c.body);
    CUfunction f = load(lane_kernel(c.body), "k");
    ASSERT_NE(f, nullptr);
    const CUdeviceptr out = allocated(128);
    ASSERT_EQ(run(f, 1, 32, 0, out), CUDA_SUCCESS) << finding();
    const auto got = download<uint32_t>(out, 32);
    for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], c.expected(l)) << "lane " << l;
  }
}

TEST_F(WarpTest, TextsAreLegal) {
  if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas on this machine";
  for (const LaneCase& c : lane_cases()) EXPECT_EQ(assemble(lane_kernel(c.body)), "") << c.body;
}

/// The position in a matrix of element i of a lane, from the tables in the PTX manual.
struct Place {
  int row, column;
};
struct Mma {
  const char* name;  ///< modifiers, such as "m16n8k16.row.col.f32.bf16.bf16.f32"
  int m, k;
  int element_bits;  ///< bits of an element of a and b
  bool is_bf16, is_float, f16_result;
  Place (*a)(int i, int lane);
  Place (*b)(int i, int lane);
};

// Positions for .f16 and .bf16, m16n8k16.
Place a_half16(int i, int lane) {
  const int group = lane >> 2, member = lane % 4;
  return {(i < 2 || (i >= 4 && i < 6)) ? group : group + 8, i < 4 ? member * 2 + (i & 1) : member * 2 + (i & 1) + 8};
}
Place b_half16(int i, int lane) {
  return {(lane % 4) * 2 + (i & 1) + (i < 2 ? 0 : 8), lane >> 2};
}
Place a_half8(int i, int lane) {
  return {i < 2 ? lane >> 2 : (lane >> 2) + 8, (lane % 4) * 2 + (i & 1)};
}
Place b_half8(int i, int lane) {
  return {(lane % 4) * 2 + i, lane >> 2};
}
// Positions for .tf32, m16n8k8.
Place a_tf32(int i, int lane) {
  return {(i == 0 || i == 2) ? lane >> 2 : (lane >> 2) + 8, i < 2 ? lane % 4 : lane % 4 + 4};
}
Place b_tf32(int i, int lane) {
  return {i == 0 ? lane % 4 : lane % 4 + 4, lane >> 2};
}
// Positions for .s8, m16n8k32.
Place a_s8(int i, int lane) {
  return {(i < 4 || (i >= 8 && i < 12)) ? lane >> 2 : (lane >> 2) + 8,
          i < 8 ? (lane % 4) * 4 + (i & 3) : (lane % 4) * 4 + (i & 3) + 16};
}
Place b_s8(int i, int lane) {
  return {i < 4 ? (lane % 4) * 4 + (i & 3) : (lane % 4) * 4 + (i & 3) + 16, lane >> 2};
}
// Positions for .f64, m8n8k4.
Place a_f64(int, int lane) {
  return {lane >> 2, lane % 4};
}
Place b_f64(int, int lane) {
  return {lane % 4, lane >> 2};
}

const Mma kMma[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, 16, false, true, false, a_half16, b_half16},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 16, false, true, true, a_half16, b_half16},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, 16, true, true, false, a_half16, b_half16},
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 16, false, true, false, a_half8, b_half8},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 16, true, true, false, a_half8, b_half8},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 32, false, true, false, a_tf32, b_tf32},
    {"m16n8k32.row.col.s32.s8.s8.s32", 16, 32, 8, false, false, false, a_s8, b_s8},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 4, 64, false, true, false, a_f64, b_f64},
};

/// Returns a small integer as the bits of an element.
uint64_t encode(const Mma& m, int value) {
  switch (m.element_bits) {
    case 8:
      return static_cast<uint8_t>(value);
    case 64:
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    case 32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    default:
      break;
  }
  const uint32_t f = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (m.is_bf16) return f >> 16;
  return value == 0 ? 0 : (f >> 16 & 0x8000) | (((f >> 23 & 255) - 112) << 10) | (f >> 13 & 1023);
}

std::string mma_text(const Mma& m, int a, int b, int c) {
  const bool wide = m.element_bits == 64;
  const char* const reg = wide ? "f64" : m.is_float && !m.f16_result ? "f32" : "b32";
  const char* const in = wide ? "f64" : "b32";
  const int size = wide ? 8 : 4;
  std::string text = ptx_header() + ".visible .entry k(.param .u64 from, .param .u64 to) {\n.reg ." + in + " a<" +
                     std::to_string(a) + ">, b<" + std::to_string(b) + ">;\n.reg ." + reg + " c<" + std::to_string(c) +
                     ">;\n.reg .b64 p, q;\n.reg .b32 i;\n"
                     "mov.u32 i, %tid.x;\nld.param.u64 p, [from];\nld.param.u64 q, [to];\n"
                     "mad.wide.u32 p, i, " +
                     std::to_string((a + b + c) * size) + ", p;\nmad.wide.u32 q, i, " + std::to_string(c * size) +
                     ", q;\n";
  int at = 0;
  const auto names = [&](char letter, int n, const char* type) {
    std::string list;
    for (int i = 0; i < n; ++i) {
      const std::string name = letter + std::to_string(i);
      text += "ld.global." + std::string(type) + " " + name + ", [p+" + std::to_string(at++ * size) + "];\n";
      list += (i ? ", " : "{") + name;
    }
    return list + "}";
  };
  const std::string an = names('a', a, in), bn = names('b', b, in), cn = names('c', c, reg);
  text += std::string("mma.sync.aligned.") + m.name + " " + cn + ", " + an + ", " + bn + ", " + cn + ";\n";
  for (int i = 0; i < c; ++i)
    text += "st.global." + std::string(reg) + " [q+" + std::to_string(i * size) + "], c" + std::to_string(i) + ";\n";
  return text + "ret;\n}\n";
}

TEST_F(WarpTest, MatricesAreMultiplied) {
  for (const Mma& m : kMma) {
    SCOPED_TRACE(m.name);
    const int a_count = m.m * m.k / 32, b_count = 8 * m.k / 32, c_count = m.m * 8 / 32;
    const int word = m.element_bits == 64 ? 64 : 32;
    const int a_regs = a_count * m.element_bits / word, b_regs = b_count * m.element_bits / word;
    const int c_regs = m.f16_result ? c_count / 2 : c_count;
    const auto a = [](int r, int c) { return (r * 7 + c * 3) % 11 - 5; };
    const auto b = [](int r, int c) { return (r * 5 + c * 2) % 9 - 4; };
    const auto c0 = [](int r, int c) { return r - c; };
    const auto c_place = [](int i, int lane) {
      return Place{i < 2 ? lane >> 2 : (lane >> 2) + 8, (lane % 4) * 2 + (i & 1)};
    };
    const int bytes = word / 8, per_lane = (a_regs + b_regs + c_regs) * bytes;
    std::vector<uint8_t> in(32 * static_cast<size_t>(per_lane));
    for (int lane = 0; lane < 32; ++lane) {
      uint8_t* p = in.data() + lane * per_lane;
      const auto put = [&](uint64_t bits, int size) {
        std::memcpy(p, &bits, static_cast<size_t>(size / 8));
        p += size / 8;
      };
      for (int i = 0; i < a_count; ++i) put(encode(m, a(m.a(i, lane).row, m.a(i, lane).column)), m.element_bits);
      for (int i = 0; i < b_count; ++i) put(encode(m, b(m.b(i, lane).row, m.b(i, lane).column)), m.element_bits);
      for (int i = 0; i < c_count; ++i) {
        const int v = c0(c_place(i, lane).row, c_place(i, lane).column);
        if (m.f16_result) {
          put(encode(m, v), 16);
        } else if (!m.is_float) {
          put(static_cast<uint32_t>(v), 32);
        } else {
          put(word == 64 ? std::bit_cast<uint64_t>(static_cast<double>(v))
                         : std::bit_cast<uint32_t>(static_cast<float>(v)),
              word);
        }
      }
    }
    const std::string text = mma_text(m, a_regs, b_regs, c_regs);
    if (!find_ptxas().empty()) {
      EXPECT_EQ(assemble(text), "");
    }
    CUfunction f = load(text, "k");
    ASSERT_NE(f, nullptr) << log;
    const CUdeviceptr p = upload(in), out = allocated(static_cast<size_t>(32 * c_regs * bytes));
    ASSERT_EQ(run(f, 1, 32, 0, p, out), CUDA_SUCCESS) << finding();
    const auto got = download<uint8_t>(out, static_cast<size_t>(32 * c_regs * bytes));
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < c_count; ++i) {
        const Place at = c_place(i, lane);
        int want = c0(at.row, at.column);
        for (int k = 0; k < m.k; ++k) want += a(at.row, k) * b(k, at.column);
        const int size = m.f16_result ? 2 : bytes;
        uint64_t bits = 0, wanted = 0;
        std::memcpy(&bits, got.data() + (lane * c_count + i) * size, static_cast<size_t>(size));
        if (m.f16_result) {
          wanted = encode(m, want);
        } else if (!m.is_float) {
          wanted = static_cast<uint32_t>(want);
        } else {
          wanted = word == 64 ? std::bit_cast<uint64_t>(static_cast<double>(want))
                              : std::bit_cast<uint32_t>(static_cast<float>(want));
        }
        ASSERT_EQ(bits, wanted) << "lane " << lane << " element " << i;
      }
    }
  }
}

/// Returns a kernel that copies 16 bytes per thread to shared memory by cp.async, and then reads them by ldmatrix.
std::string ldmatrix_text(bool transposed, const std::string& wait) {
  return ptx_header() + R"(
.visible .entry k(.param .u64 from, .param .u64 to) {
	.reg .b32 i, s, a, b, c, d;
	.reg .b64 p, q;
	.shared .align 16 .b8 tile[512];
	mov.u32 i, %tid.x;
	ld.param.u64 p, [from];
	ld.param.u64 q, [to];
	mad.wide.u32 p, i, 16, p;
	mad.wide.u32 q, i, 16, q;
	mov.u32 s, tile;
	mad.lo.u32 s, i, 16, s;
	cp.async.cg.shared.global [s], [p], 16;
	cp.async.commit_group;
)" + wait +
         R"(
	bar.sync 0;
	ldmatrix.sync.aligned.m8n8.x4)" +
         (transposed ? ".trans" : "") + R"(.shared.b16 {a, b, c, d}, [s];
	st.global.v4.b32 [q], {a, b, c, d};
	ret;
}
)";
}

TEST_F(WarpTest, MatricesAreLoaded) {
  std::vector<uint16_t> in(256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i);
  for (const bool transposed : {false, true}) {
    const std::string text = ldmatrix_text(transposed, "cp.async.wait_group 0;");
    if (!find_ptxas().empty()) {
      EXPECT_EQ(assemble(text), "");
    }
    CUfunction f = load(text, "k");
    const CUdeviceptr p = upload(in), out = allocated(512);
    ASSERT_EQ(run(f, 1, 32, 0, p, out), CUDA_SUCCESS) << finding();
    const auto got = download<uint16_t>(out, 256);
    for (int lane = 0; lane < 32; ++lane) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        for (int e = 0; e < 2; ++e) {
          const int row = transposed ? 2 * (lane % 4) + e : lane / 4,
                    column = transposed ? lane / 4 : 2 * (lane % 4) + e;
          EXPECT_EQ(got[static_cast<size_t>(lane * 8 + matrix * 2 + e)], matrix * 64 + row * 8 + column);
        }
      }
    }
  }
}

TEST_F(WarpTest, CopiesAreNotThereBeforeTheyAreWaitedFor) {
  CUfunction f = load(ldmatrix_text(false, ""), "k");
  const CUdeviceptr p = upload(std::vector<uint16_t>(256)), out = allocated(512);
  EXPECT_EQ(run(f, 1, 32, 0, p, out), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(finding(), ::testing::HasSubstr("nobody wrote these bytes before"));
}

}  // namespace
}  // namespace collet::gpu::testing_only
