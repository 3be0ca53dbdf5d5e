// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/storage.h"

#include <algorithm>
#include <map>

namespace collet::cpu {
namespace {

/// Storages by when they are alive. A life lies in the shortest aligned stretch of time that holds it, of lengths that
/// are powers of two: who asks for a stretch looks at those few that can meet it.
class Busy {
 public:
  void add(int def, int last, uint32_t storage) {
    unsigned level = 0;
    while ((place(def) >> level) != (place(last) >> level)) ++level;
    if (levels_.size() <= level) levels_.resize(level + 1);
    levels_[level][place(def) >> level].push_back({def, last, storage});
  }

  template <typename Visit>
  void each(int def, int last, const Visit& visit) const {
    for (unsigned level = 0; level < levels_.size(); ++level) {
      const auto end = levels_[level].upper_bound(place(last) >> level);
      for (auto it = levels_[level].lower_bound(place(def) >> level); it != end; ++it) {
        for (const Life& life : it->second) {
          if (life.def <= last && def <= life.last) visit(life.storage);
        }
      }
    }
  }

 private:
  struct Life {
    int def;
    int last;
    uint32_t storage;
  };
  static uint64_t place(int time) { return static_cast<uint64_t>(static_cast<int64_t>(time) - INT32_MIN); }
  std::vector<std::map<uint64_t, std::vector<Life>>> levels_;
};

}  // namespace

WebId Storages::add(uint64_t bytes, int def, Kind kind, uint32_t slot, uint64_t offset) {
  auto web = static_cast<WebId>(webs_.size());
  webs_.push_back({def, def, static_cast<uint32_t>(storages_.size()), {}});
  storages_.push_back({kind, slot, offset, bytes, {web}, {}});
  return web;
}

WebId Storages::add_in(WebId like, int def) {
  auto web = static_cast<WebId>(webs_.size());
  const uint32_t storage = webs_[like].storage;
  webs_.push_back({def, def, storage, {}});
  storages_[storage].webs.push_back(web);
  return web;
}

void Storages::use(WebId web, int time) {
  webs_[web].last = std::max(webs_[web].last, time);
}

void Storages::may_alias(WebId result, WebId argument) {
  storages_[webs_[result].storage].aliases.push_back(webs_[argument].storage);
}

bool Storages::clash(WebId a, WebId b) const {
  const Web& x = webs_[a];
  const Web& y = webs_[b];
  if (x.last < y.def || y.last < x.def) return false;
  if (x.last == y.def && allowed_.count({a, b, y.def})) return false;
  if (y.last == x.def && allowed_.count({b, a, x.def})) return false;
  return !in_gap(a, b) && !in_gap(b, a);
}

bool Storages::in_gap(WebId outer, WebId inner) const {
  const Web& x = webs_[outer];
  const Web& y = webs_[inner];
  return std::any_of(x.gaps.begin(), x.gaps.end(), [&](const Gap& g) {
    const bool after = y.def > g.from || (y.def == g.from && allowed_.count({outer, inner, y.def}));
    return x.last <= g.end && after && y.last < g.to;
  });
}

bool Storages::clash_storages(uint32_t a, uint32_t b) const {
  for (WebId x : storages_[a].webs) {
    for (WebId y : storages_[b].webs) {
      if (clash(x, y)) return true;
    }
  }
  return false;
}

bool Storages::unite(WebId a, WebId b) {
  uint32_t from = webs_[a].storage;
  uint32_t to = webs_[b].storage;
  if (from == to) return true;
  if (storages_[from].kind != Kind::kWorkspace && storages_[to].kind != Kind::kWorkspace) return false;
  if (storages_[from].kind == Kind::kConstant || storages_[to].kind == Kind::kConstant) return false;
  if (storages_[from].kind == Kind::kArgument || storages_[to].kind == Kind::kArgument) return false;
  if (storages_[from].bytes != storages_[to].bytes) return false;
  if (clash_storages(from, to)) return false;
  for (auto [one, other] : {std::pair{from, to}, std::pair{to, from}}) {
    for (uint32_t alias : storages_[one].aliases) {
      if (clash_storages(other, alias)) return false;
    }
  }
  if (storages_[from].kind != Kind::kWorkspace) std::swap(from, to);
  for (WebId w : storages_[from].webs) {
    webs_[w].storage = to;
    storages_[to].webs.push_back(w);
  }
  storages_[to].aliases.insert(storages_[to].aliases.end(), storages_[from].aliases.begin(),
                               storages_[from].aliases.end());
  storages_[from].webs.clear();
  return true;
}

uint64_t Storages::place_all(uint64_t first) {
  struct Life {
    uint32_t storage;
    int def;
    int last;
  };
  std::vector<Life> lives;
  for (uint32_t s = 0; s < storages_.size(); ++s) {
    if (storages_[s].kind != Kind::kWorkspace || storages_[s].webs.empty()) continue;
    Life life{s, INT32_MAX, INT32_MIN};
    for (WebId w : storages_[s].webs) {
      life.def = std::min(life.def, webs_[w].def);
      life.last = std::max(life.last, webs_[w].last);
    }
    lives.push_back(life);
  }
  std::stable_sort(lives.begin(), lives.end(), [&](const Life& x, const Life& y) {
    return storages_[x.storage].bytes > storages_[y.storage].bytes;
  });
  Busy placed;
  uint64_t end = first;
  for (const Life& life : lives) {
    // Gaps between what is alive at the same time, lowest first.
    std::vector<std::pair<uint64_t, uint64_t>> busy;
    placed.each(life.def, life.last, [&](uint32_t other) {
      busy.emplace_back(storages_[other].offset, storages_[other].offset + storages_[other].bytes);
    });
    std::sort(busy.begin(), busy.end());
    Storage& s = storages_[life.storage];
    uint64_t at = first;
    for (auto [from, to] : busy) {
      if (at + s.bytes <= from) break;
      at = std::max(at, (to + 63) / 64 * 64);
    }
    s.offset = at;
    end = std::max(end, at + s.bytes);
    placed.add(life.def, life.last, life.storage);
  }
  return end;
}

Place Storages::place(WebId web, const Plan& plan) const {
  const Storage& s = storages_[webs_[web].storage];
  switch (s.kind) {
    case Kind::kArgument:
      return {s.slot, s.offset};
    case Kind::kResult:
      return {result_slot(plan, s.slot), s.offset};
    case Kind::kConstant:
      return {constant_slot(plan), s.offset};
    case Kind::kWorkspace:
      break;
  }
  return {workspace_slot(plan), s.offset};
}

}  // namespace collet::cpu
