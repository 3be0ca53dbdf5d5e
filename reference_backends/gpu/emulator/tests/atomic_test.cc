// SPDX-License-Identifier: Apache-2.0
// Tests atomic operations in global and in shared memory, and all forms of loads and stores.
#include <bit>
#include <functional>

#include "reference_backends/gpu/emulator/tests/gpu.h"
#include "reference_backends/gpu/emulator/tests/ptxas.h"

namespace collet::gpu::testing_only {
namespace {

using U = uint64_t;
using AtomicTest = GpuTest;

template <typename T>
U of(T v) {
  U bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  return bits;
}
template <typename T>
T from(U v) {
  T out;
  std::memcpy(&out, &v, sizeof out);
  return out;
}

struct Case {
  const char* op;    ///< instruction after the state space, such as "add.u32"
  const char* type;  ///< type of the registers
  int bytes;
  U before, operand, other;
  U after;
};

const Case kCases[] = {
    {"add.u32", "b32", 4, 7, 5, 0, 12},
    {"add.s32", "b32", 4, of(-3), 5, 0, 2},
    {"add.u64", "b64", 8, UINT32_MAX, 1, 0, U{1} << 32},
    {"add.f32", "f32", 4, of(1.5f), of(2.25f), 0, of(3.75f)},
    {"add.f64", "f64", 8, of(1.5), of(2.25), 0, of(3.75)},
    {"add.noftz.f16", "b16", 2, 0x3c00, 0x4000, 0, 0x4200},  // 1 + 2
    {"add.noftz.f16x2", "b32", 4, 0x3c004000, 0x40003c00, 0, 0x42004200},
    {"min.s32", "b32", 4, 3, of(-4), 0, of(-4)},
    {"min.u32", "b32", 4, 3, of(-4), 0, 3},
    {"max.s32", "b32", 4, 3, of(-4), 0, 3},
    {"max.u64", "b64", 8, 3, ~U{0}, 0, ~U{0}},
    {"min.s64", "b64", 8, 3, ~U{0}, 0, ~U{0}},
    {"and.b32", "b32", 4, 0xff0f, 0x0fff, 0, 0x0f0f},
    {"or.b64", "b64", 8, 0xff00, U{1} << 40, 0, 0xff00 | U{1} << 40},
    {"xor.b32", "b32", 4, 0xff, 0xf0, 0, 0x0f},
    {"exch.b32", "b32", 4, 1, 99, 0, 99},
    {"exch.b64", "b64", 8, 1, 99, 0, 99},
    {"cas.b32", "b32", 4, 5, 5, 77, 77},
    {"cas.b32", "b32", 4, 5, 6, 77, 5},
    {"cas.b64", "b64", 8, 5, 5, ~U{0}, ~U{0}},
    {"inc.u32", "b32", 4, 5, 9, 0, 6},
    {"inc.u32", "b32", 4, 9, 9, 0, 0},
    {"dec.u32", "b32", 4, 5, 9, 0, 4},
    {"dec.u32", "b32", 4, 0, 9, 0, 9},
    {"dec.u32", "b32", 4, 12, 9, 0, 9},
};

/// Returns a kernel that loads *p, does the operation on memory of a state space, and stores the old value to p[1] and
/// the new one to p[2].
std::string text_of(const Case& c, const std::string& space, int sm) {
  const bool cas = std::string(c.op).starts_with("cas");
  const std::string t = c.type, n = std::to_string(c.bytes);
  std::string text = ptx_header(sm) + ".visible .entry k(.param .u64 to) {\n.reg .b64 p, q;\n.reg ." + t +
                     " a, b, c, old, new;\n"
                     ".shared .align 8 .b8 cell[8];\nld.param.u64 p, [to];\n"
                     "ld.global." +
                     t + " a, [p];\nld.global." + t + " b, [p+24];\nld.global." + t + " c, [p+32];\n";
  if (space == "global") {
    text += "mov.u64 q, p;\n";
  } else {
    text += "mov.u64 q, cell;\nst.shared." + t + " [q], a;\n";
    if (space.empty()) text += "cvta.shared.u64 q, q;\n";
  }
  const std::string dot = space.empty() ? "" : "." + space;
  text += "atom.relaxed.gpu" + dot + "." + c.op + " old, [q], b" + (cas ? ", c" : "") + ";\n";
  text +=
      "ld" + dot + "." + t + " new, [q];\nst.global." + t + " [p+8], old;\nst.global." + t + " [p+16], new;\nret;\n}\n";
  return text;
}

TEST_F(AtomicTest, ChangeMemoryOfEverySpace) {
  for (const Case& c : kCases) {
    for (const char* space : {"global", "shared", ""}) {
      SCOPED_TRACE(std::string(c.op) + " " + space);
      const std::string text = text_of(c, space, 90);
      if (!find_ptxas().empty()) {
        EXPECT_EQ(assemble(text, 90), "");
      }
      CUfunction f = load(text, "k");
      ASSERT_NE(f, nullptr) << log;
      const CUdeviceptr p = upload(std::vector<U>{c.before, 0, 0, c.operand, c.other});
      ASSERT_EQ(run(f, 1, 1, 0, p), CUDA_SUCCESS) << finding();
      const auto got = download<U>(p, 3);
      const U mask = c.bytes == 8 ? ~U{0} : (U{1} << (8 * c.bytes)) - 1;
      EXPECT_EQ(got[1] & mask, c.before & mask);
      EXPECT_EQ(got[2] & mask, c.after & mask);
    }
  }
}

TEST_F(AtomicTest, ManyBlocksAddUp) {
  const std::string text = ptx_header() + R"(
.visible .entry k(.param .u64 to) {
	.reg .b64 p;
	.reg .f32 f;
	.reg .b32 i;
	ld.param.u64 p, [to];
	red.global.add.u32 [p], 3;
	mov.f32 f, 0f3F000000;
	red.global.add.f32 [p+4], f;
	mov.u32 i, %ctaid.x;
	red.global.max.u32 [p+8], i;
	ret;
}
)";
  CUfunction f = load(text, "k");
  const CUdeviceptr p = upload(std::vector<uint32_t>(3));
  ASSERT_EQ(run(f, 64, 128, 0, p), CUDA_SUCCESS) << finding();
  const auto got = download<uint32_t>(p, 3);
  EXPECT_EQ(got[0], 3u * 64 * 128);
  EXPECT_EQ(from<float>(got[1]), 0.5f * 64 * 128);
  EXPECT_EQ(got[2], 63u);
}

TEST_F(AtomicTest, LoadsAndStoresOfEverySize) {
  const std::string text = ptx_header() + R"(
.visible .entry k(.param .u64 from, .param .u64 to) {
	.reg .b64 p, q, l, w<4>;
	.reg .b32 r<4>;
	.reg .b16 h<4>;
	.reg .f64 d<2>;
	.local .align 16 .b8 own[32];
	ld.param.u64 p, [from];
	ld.param.u64 q, [to];
	ld.global.s8 r0, [p];
	st.global.u32 [q], r0;
	ld.global.u8 h0, [p+1];
	st.global.u16 [q+4], h0;
	ld.global.nc.v4.u8 {h0, h1, h2, h3}, [p];
	st.global.v2.u8 [q+6], {h2, h3};
	ld.global.L1::no_allocate.v2.u64 {w0, w1}, [p];
	st.global.v2.b64 [q+16], {w1, w0};
	ld.volatile.global.u16 h1, [p+2];
	st.volatile.global.u16 [q+8], h1;
	ld.acquire.gpu.global.u32 r1, [p+4];
	st.release.gpu.global.u32 [q+12], r1;
	ld.global.v2.f64 {d0, d1}, [p+16];
	mov.u64 l, own;
	cvta.local.u64 l, l;
	st.v2.f64 [l+16], {d1, d0};
	ld.local.v4.b32 {r0, r1, r2, r3}, [own+16];
	st.global.v4.b32 [q+32], {r0, r1, r2, r3};
	ret;
}
)";
  if (!find_ptxas().empty()) {
    EXPECT_EQ(assemble(text), "");
  }
  CUfunction f = load(text, "k");
  ASSERT_NE(f, nullptr) << log;
  std::vector<uint8_t> in(32);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(0xf0 + i);
  const CUdeviceptr p = upload(in), q = allocated(48);
  ASSERT_EQ(d.cuMemsetD8Async(q, 0, 48, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(run(f, 1, 1, 0, p, q), CUDA_SUCCESS) << finding();
  const auto got = download<uint8_t>(q, 48);
  const std::vector<uint8_t> want = {0xf0, 0xff, 0xff, 0xff, 0xf1, 0,    0xf2, 0xf3, 0xf2, 0xf3, 0,    0,
                                     0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,
                                     0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0x08, 0x09, 0x0a, 0x0b,
                                     0x0c, 0x0d, 0x0e, 0x0f, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07};
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace collet::gpu::testing_only
