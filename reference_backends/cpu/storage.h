// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which values share memory. Time is the number of a step. A web is the life of one content: from the step that writes
/// it to the last that reads it. Webs whose lives do not meet may lie in one storage.

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "reference_backends/cpu/plan.h"

namespace collet::cpu {

using WebId = uint32_t;

class Storages {
 public:
  enum class Kind : uint8_t { kWorkspace, kArgument, kResult, kConstant };

  /// A content of `bytes` written at `def`, in memory of its own.
  WebId add(uint64_t bytes, int def, Kind kind = Kind::kWorkspace, uint32_t slot = 0, uint64_t offset = 0);
  /// A further content, written at `def`, in the memory of `like`.
  WebId add_in(WebId like, int def);
  void use(WebId web, int time);
  int last_use(WebId web) const { return webs_[web].last; }
  /// Nobody needs the content after `from` and before `to`, unless somebody does after `end`: the steps between are those
  /// of other branches of a conditional, which do not run where those that use it do.
  void add_gap(WebId web, int from, int to, int end) { webs_[web].gaps.push_back({from, to, end}); }
  /// At `time` a step may write `to` over `from` while it reads it.
  void allow(WebId from, WebId to, int time) { allowed_.insert({from, to, time}); }
  /// A result that may lie in the memory of an argument.
  void may_alias(WebId result, WebId argument);
  /// Puts both in one memory if their lives allow it.
  bool unite(WebId a, WebId b);
  uint64_t bytes(WebId web) const { return storages_[webs_[web].storage].bytes; }
  bool is_argument(WebId web) const { return storages_[webs_[web].storage].kind == Kind::kArgument; }
  bool same(WebId a, WebId b) const { return webs_[a].storage == webs_[b].storage; }
  /// Gives every storage of the workspace its offset from `first`; returns the end.
  uint64_t place_all(uint64_t first);
  Place place(WebId web, const Plan& plan) const;

 private:
  struct Gap {
    int from;
    int to;
    int end;
  };
  struct Web {
    int def;
    int last;
    uint32_t storage;
    std::vector<Gap> gaps;
  };
  struct Storage {
    Kind kind;
    uint32_t slot;
    uint64_t offset;
    uint64_t bytes;
    std::vector<WebId> webs;
    std::vector<uint32_t> aliases;  ///< storages that may be the same memory at run time
  };

  bool clash(WebId a, WebId b) const;
  /// Whether all of the life of `inner` lies in a gap of the life of `outer`.
  bool in_gap(WebId outer, WebId inner) const;
  bool clash_storages(uint32_t a, uint32_t b) const;

  std::vector<Web> webs_;
  std::vector<Storage> storages_;
  std::set<std::tuple<WebId, WebId, int>> allowed_;
};

}  // namespace collet::cpu
