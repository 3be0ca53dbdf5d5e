// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Buffer planning: which values share memory. Time is the number of a step. A live range spans from the step that writes a
/// value to the last step that reads it. Values whose live ranges do not overlap may share a buffer.

#include <collet/codegen/launch_plan.h>

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace collet::codegen {

using RangeId = uint32_t;

/// Assigns live ranges to buffers, and buffers to offsets in the workspace. A live range has one buffer; ranges that do
/// not overlap may share it.
class BufferPlanner {
 public:
  enum class Kind : uint8_t { kWorkspace, kArgument, kResult, kConstant };

  /// Adds a live range of `bytes` that begins at `def`, in a buffer of its own.
  RangeId add(uint64_t bytes, int def, Kind kind = Kind::kWorkspace, uint32_t slot = 0, uint64_t offset = 0);
  /// Adds a live range that begins at `def`, in the buffer of `like`.
  RangeId add_in(RangeId like, int def);
  void use(RangeId range, int time);
  int last_use(RangeId range) const { return ranges_[range].last; }
  /// Declares that the range is not live after `from` and before `to`, unless it is live after `end`. The steps between
  /// belong to other branches of a conditional, which do not run if the branch that uses the range does.
  void add_gap(RangeId range, int from, int to, int end) { ranges_[range].gaps.push_back({from, to, end}); }
  /// Declares that a step at `time` may write `to` over `from` while it reads it.
  void allow(RangeId from, RangeId to, int time) { allowed_.insert({from, to, time}); }
  /// Declares that a result may share the memory of an argument.
  void may_alias(RangeId result, RangeId argument);
  /// Puts both ranges in one buffer if they do not overlap. Returns whether they share a buffer now.
  bool coalesce(RangeId a, RangeId b);
  uint64_t bytes(RangeId range) const { return buffers_[ranges_[range].storage].bytes; }
  bool is_argument(RangeId range) const { return buffers_[ranges_[range].storage].kind == Kind::kArgument; }
  bool same(RangeId a, RangeId b) const { return ranges_[a].storage == ranges_[b].storage; }
  /// Assigns each buffer of the workspace an offset, beginning at `first`, and returns the end of the last one.
  uint64_t assign_offsets(uint64_t first);
  Place place(RangeId range, const LaunchPlan& plan) const;

 private:
  struct Gap {
    int from;
    int to;
    int end;
  };
  struct LiveRange {
    int def;
    int last;
    uint32_t storage;
    std::vector<Gap> gaps;
  };
  struct Buffer {
    Kind kind;
    uint32_t slot;
    uint64_t offset;
    uint64_t bytes;
    std::vector<RangeId> ranges;
    std::vector<uint32_t> aliases;  ///< buffers that may have the same memory at run time
  };

  bool clash(RangeId a, RangeId b) const;
  /// True if the whole of range `inner` is in a gap of range `outer`.
  bool in_gap(RangeId outer, RangeId inner) const;
  bool buffers_clash(uint32_t a, uint32_t b) const;

  std::vector<LiveRange> ranges_;
  std::vector<Buffer> buffers_;
  std::set<std::tuple<RangeId, RangeId, int>> allowed_;
};

}  // namespace collet::codegen
