// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/named_sharding.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "hlo/ir/scanner.h"

// Checks shardings on meshes of named axes, which are kept as text: mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)),
// [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}, unreduced={...}, manual={...}, metadata={...}.

namespace collet::hlo {
namespace {

class NamedReader {
 public:
  explicit NamedReader(std::string_view text) : in_(text) {}

  bool run() {
    const bool alone = in_.eat("maximal_mesh");
    int64_t device = 0;
    if (alone && (!in_.eat('[') || !in_.eat("device_id") || !in_.eat('=') || !number(0, device) || !in_.eat(']')))
      return false;
    if (!alone && !mesh()) return false;
    bool more = in_.eat(',');
    if (!alone && in_.eat("device_ids")) {
      if (!in_.eat('=') || !devices()) return false;
      more = in_.eat(',');
    }
    if (!alone && in_.is('[')) {
      if (!dimensions()) return false;
      more = in_.eat(',');
    }
    while (more) {
      if (!attribute()) return false;
      more = in_.eat(',');
    }
    return in_.at_end();
  }

 private:
  /// A part of an axis: the axis, the number of tiles before (outside of) the part, and its size. For the whole axis
  /// both numbers are absent.
  using Use = std::tuple<size_t, int64_t, int64_t>;

  bool mesh() {
    if (!in_.eat("mesh") || !in_.eat('[')) return false;
    if (!in_.eat(']')) {
      do {
        std::string_view name;
        int64_t size = 0;
        if (!axis_name(name) || !in_.eat('=') || !number(1, size) || !places_.emplace(name, sizes_.size()).second)
          return false;
        sizes_.push_back(size);
      } while (in_.eat(','));
      if (!in_.eat(']')) return false;
    }
    return true;
  }

  bool dimensions() {
    if (!in_.eat('[')) return false;
    if (in_.eat(']')) return true;
    do {
      if (!axis_list(true)) return false;
    } while (in_.eat(','));
    return in_.eat(']');
  }

  bool attribute() {
    const std::string_view what = in_.word();
    if (!in_.eat('=')) return what == "replicated";
    std::string_view inside;
    if (what == "metadata") return in_.is('{') && in_.braces(inside);
    return (what == "replicated" || what == "unreduced" || what == "manual") && axis_list(false);
  }

  /// Reads {'x', 'y':(1)2, ?}; an axis is given by its name or its number.
  bool axis_list(bool may_be_open) {
    if (!in_.eat('{')) return false;
    if (in_.eat('}')) return true;
    do {
      if (may_be_open && in_.eat('?')) break;
      std::string_view name;
      if (!axis_name(name)) return false;
      const std::optional<size_t> axis = place(name);
      int64_t before = 0, size = 0;
      if (!axis || (in_.eat(':') && (!in_.eat('(') || !number(1, before) || !in_.eat(')') || !number(1, size))))
        return false;
      if (size && (sizes_[*axis] % size != 0 || sizes_[*axis] / size % before != 0)) return false;
      if (!uses_.emplace(*axis, before, size).second) return false;
    } while (in_.eat(','));
    return in_.eat('}');
  }

  std::optional<size_t> place(std::string_view name) const {
    if (const auto known = places_.find(name); known != places_.end()) return known->second;
    size_t out = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), out);
    if (error != std::errc() || end != name.data() + name.size() || out >= sizes_.size()) return std::nullopt;
    return out;
  }

  bool devices() {
    if (!in_.eat('(')) return false;
    if (!in_.eat('[')) return numbers(')');
    if (!numbers(']')) return false;
    if (in_.eat('T') && (!in_.eat('(') || !numbers(')'))) return false;
    return in_.eat(')');
  }

  bool numbers(char close) {
    if (in_.eat(close)) return true;
    int64_t value = 0;
    do {
      if (!number(0, value)) return false;
    } while (in_.eat(','));
    return in_.eat(close);
  }

  bool number(int64_t least, int64_t& out) { return in_.number(out) && out >= least; }

  bool axis_name(std::string_view& out) {
    const char quote = in_.is('"') ? '"' : '\'';
    return in_.quoted(quote, out) && (quote == '\'' || out.find('\\') == std::string_view::npos);
  }

  Scanner in_;
  std::unordered_map<std::string_view, size_t> places_;
  std::vector<int64_t> sizes_;
  std::set<Use> uses_;
};

}  // namespace

bool is_named_sharding(std::string_view text) {
  return NamedReader(text).run();
}

}  // namespace collet::hlo
