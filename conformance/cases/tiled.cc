// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "conformance/cases/case.h"
#include "conformance/cases/op_case.h"
#include "hlo/text/parser.h"

/// \file
/// Adds ops whose arrays are larger than scratchpads of 16 KiB to 4 MiB, so that a device has to cut them. No size is a multiple of
/// a tile. The inputs and bounds are those of any op of a program.

namespace collet::conformance {
namespace {

// In the default set, the arrays of an op have 20 KiB to 2 MiB together.
constexpr std::string_view kProgram = R"(HloModule tiled

add_s32 { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b) }
add_f32 { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
max_s8 { a = s8[] parameter(0)
  b = s8[] parameter(1)
  ROOT r = s8[] maximum(a, b) }
max_f32 { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b) }

ENTRY main {
  zero = s32[] constant(0)
  none = f32[] constant(0)
  least = s8[] constant(-128)
  lowest = f32[] constant(-inf)
  pad8 = s8[] constant(3)
  a1 = s8[1100,70] parameter(0)
  a2 = s8[70,50] parameter(1)
  rows_1100x70x50 = s32[1100,50] dot(a1, a2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a3 = s8[5,130] parameter(2)
  a4 = s8[130,3100] parameter(3)
  columns_5x130x3100 = s32[5,3100] dot(a3, a4), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a5 = s8[9,5003] parameter(4)
  a6 = s8[5003,33] parameter(5)
  depth_9x5003x33 = s32[9,33] dot(a5, a6), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a7 = s8[12,41,65] parameter(6)
  a8 = s8[12,65,47] parameter(7)
  batch_12x41x65x47 = s32[12,41,47] dot(a7, a8), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  a9 = f32[67,150] parameter(8)
  a10 = f32[110,150] parameter(9)
  turned_67x150x110 = f32[67,110] dot(a9, a10), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  a11 = f16[67,150] parameter(10)
  a12 = f16[150,110] parameter(11)
  half_67x150x110 = f16[67,110] dot(a11, a12), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b1 = s8[1,40,37,24] parameter(12)
  b2 = s8[3,3,24,33] parameter(13)
  halo_40x37x24 = s32[1,40,37,33] convolution(b1, b2), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  strided_40x37x24 = s32[1,19,18,33] convolution(b1, b2), window={size=3x3 stride=2x2 pad=0_0x0_1}, dim_labels=b01f_01io->b01f
  dilated_40x37x24 = s32[1,38,33,33] convolution(b1, b2), window={size=3x3 pad=1_1x0_0 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f
  b3 = s8[3,3,1,24] parameter(14)
  depthwise_40x37x24 = s32[1,40,37,24] convolution(b1, b3), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=24
  b4 = f32[2,5,30,29] parameter(15)
  b5 = f32[9,5,5,4] parameter(16)
  channels_first_30x29 = f32[2,9,30,29] convolution(b4, b5), window={size=5x4 pad=2_2x1_2}, dim_labels=bf01_oi01->bf01
  c1 = s32[301,130] parameter(17)
  c2 = f32[301,130] parameter(18)
  rows_301x130 = s32[301] reduce(c1, zero), dimensions={1}, to_apply=add_s32
  columns_301x130 = f32[130] reduce(c2, none), dimensions={0}, to_apply=add_f32
  all_301x130 = f32[] reduce(c2, lowest), dimensions={0,1}, to_apply=max_f32
  d1 = s8[1,60,57,20] parameter(19)
  pool_60x57x20 = s8[1,30,29,20] reduce-window(d1, least), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0}, to_apply=max_s8
  d2 = f32[1,40,37,20] parameter(20)
  mean_40x37x20 = f32[1,39,36,20] reduce-window(d2, none), window={size=1x2x2x1}, to_apply=add_f32
  e1 = s8[333,171] parameter(21)
  e2 = s8[333,171] parameter(22)
  bytes_333x171 = s8[333,171] add(e1, e2)
  e3 = f32[333,171] parameter(23)
  e4 = f32[333,171] parameter(24)
  floats_333x171 = f32[333,171] multiply(e3, e4)
  table_333x171 = f32[333,171] tanh(e3)
  narrow_333x171 = s8[333,171] convert(e3)
  turned_333x171 = f32[171,333] transpose(e3), dimensions={1,0}
  border_333x171 = s8[340,174] pad(e1, pad8), padding=3_4x0_3
  part_333x171 = s8[166,85] slice(e1), slice={[1:333:2],[0:170:2]}
  vector = f32[333] parameter(25)
  spread_333x171 = f32[333,171] broadcast(vector), dimensions={0}
  joined_333x171 = s8[333,342] concatenate(e1, e2), dimensions={1}
MORE}
)";

// Beyond 4 MiB, in the full set.
constexpr std::string_view kMore = R"(  f1 = s8[7,1100] parameter(26)
  f2 = s8[1100,4100] parameter(27)
  weights_7x1100x4100 = s32[7,4100] dot(f1, f2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f3 = s8[1,230,241,40] parameter(28)
  f4 = s8[3,3,1,40] parameter(29)
  image_230x241x40 = s32[1,230,241,40] convolution(f3, f4), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=40
  f5 = f32[1501,1103] parameter(30)
  rows_1501x1103 = f32[1501] reduce(f5, none), dimensions={1}, to_apply=add_f32
  floats_1501x1103 = f32[1501,1103] negate(f5)
)";

constexpr std::string_view kMark = "tiled.";

}  // namespace

void mark_tiled(CaseList& list, size_t first) {
  std::vector<Case>& all = list.cases();
  for (size_t i = first; i < all.size(); ++i) {
    const size_t type = all[i].name.find('/');
    all[i].name.insert(all[i].name.find('/', type + 1) + 1, kMark);
  }
  const auto is_extra = [](const Case& one) {
    return !one.name.ends_with("/unit") && !one.name.ends_with("/whole_range");
  };
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  if (!list.full()) all.erase(std::remove_if(begin, all.end(), is_extra), all.end());
}

bool is_tiled(std::string_view name) {
  return name.find("/tiled.") != std::string_view::npos;
}

void add_tiled_cases(CaseList& list) {
  std::string text(kProgram);
  text.replace(text.find("MORE"), 4, list.full() ? kMore : std::string_view());
  const auto module = hlo::parse_module(text);
  if (!module.ok()) {
    std::fprintf(stderr, "%s\n", module.status().to_string().c_str());
    std::abort();  // the text is above
  }
  const hlo::Module& program = **module;
  for (const hlo::InstrId id : program.entry_computation().order) {
    if (program[id].op == Op::PARAMETER || program[id].op == Op::CONSTANT) continue;
    for (Case& one : cases_of_op(program, id, "tiled").cases) {
      if (list.full() || one.name.ends_with("/unit")) list.add(std::move(one));
    }
  }
}

}  // namespace collet::conformance
