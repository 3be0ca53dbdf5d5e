// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/named_sharding.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

// Shardings on meshes of named axes, which are kept by their text: mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)),
// [{'x'}, {'y':(1)2, ?}], replicated={'y':(2)2}, unreduced={...}, manual={...}, metadata={...}.

namespace collet::hlo {
namespace {

class NamedReader {
 public:
  explicit NamedReader(std::string_view text) : rest_(text) {}

  bool run() {
    const bool alone = eat("maximal_mesh");
    int64_t device = 0;
    if (alone && (!eat('[') || !eat("device_id") || !eat('=') || !number(0, device) || !eat(']'))) return false;
    if (!alone && !mesh()) return false;
    bool more = eat(',');
    if (!alone && eat("device_ids")) {
      if (!eat('=') || !devices()) return false;
      more = eat(',');
    }
    if (!alone && is('[')) {
      if (!dimensions()) return false;
      more = eat(',');
    }
    while (more) {
      if (!attribute()) return false;
      more = eat(',');
    }
    return at_end();
  }

 private:
  /// A factor of an axis: the axis, what lies before the factor, its size. The whole axis has neither number.
  using Use = std::tuple<size_t, int64_t, int64_t>;

  bool mesh() {
    if (!eat("mesh") || !eat('[')) return false;
    if (!eat(']')) {
      do {
        std::string_view name;
        int64_t size = 0;
        if (!quoted(name) || !eat('=') || !number(1, size) || !places_.emplace(name, sizes_.size()).second)
          return false;
        sizes_.push_back(size);
      } while (eat(','));
      if (!eat(']')) return false;
    }
    return true;
  }

  bool dimensions() {
    if (!eat('[')) return false;
    if (eat(']')) return true;
    do {
      if (!axis_list(true)) return false;
    } while (eat(','));
    return eat(']');
  }

  bool attribute() {
    const std::string_view name = word();
    if (!eat('=')) return name == "replicated";
    if (name == "metadata") return braces();
    return (name == "replicated" || name == "unreduced" || name == "manual") && axis_list(false);
  }

  /// {'x', 'y':(1)2, ?}; an axis by its name or its number.
  bool axis_list(bool may_be_open) {
    if (!eat('{')) return false;
    if (eat('}')) return true;
    do {
      if (may_be_open && eat('?')) break;
      std::string_view name;
      if (!quoted(name)) return false;
      const std::optional<size_t> axis = place(name);
      int64_t before = 0, size = 0;
      if (!axis || (eat(':') && (!eat('(') || !number(1, before) || !eat(')') || !number(1, size)))) return false;
      if (size && (sizes_[*axis] % size != 0 || sizes_[*axis] / size % before != 0)) return false;
      if (!uses_.emplace(*axis, before, size).second) return false;
    } while (eat(','));
    return eat('}');
  }

  std::optional<size_t> place(std::string_view name) const {
    if (const auto known = places_.find(name); known != places_.end()) return known->second;
    size_t out = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), out);
    if (error != std::errc() || end != name.data() + name.size() || out >= sizes_.size()) return std::nullopt;
    return out;
  }

  bool devices() {
    if (!eat('(')) return false;
    if (!eat('[')) return numbers(')');
    if (!numbers(']')) return false;
    if (eat('T') && (!eat('(') || !numbers(')'))) return false;
    return eat(')');
  }

  /// From a brace to the one that closes it.
  bool braces() {
    if (!is('{')) return false;
    int depth = 0;
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        while (++i < rest_.size() && rest_[i] != '"') i += rest_[i] == '\\';
        continue;
      }
      depth += (rest_[i] == '{') - (rest_[i] == '}');
      if (depth > 0) continue;
      rest_.remove_prefix(i + 1);
      return true;
    }
    return false;
  }

  bool numbers(char close) {
    if (eat(close)) return true;
    int64_t value = 0;
    do {
      if (!number(0, value)) return false;
    } while (eat(','));
    return eat(close);
  }

  bool number(int64_t least, int64_t& out) {
    blanks();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    if (error != std::errc() || out < least) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }

  bool quoted(std::string_view& out) {
    const char quote = is('"') ? '"' : '\'';
    if (!eat(quote)) return false;
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return false;
    out = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return quote == '\'' || out.find('\\') == std::string_view::npos;
  }

  std::string_view word() {
    blanks();
    size_t n = 0;
    while (n < rest_.size() && ((rest_[n] >= 'a' && rest_[n] <= 'z') || rest_[n] == '_')) ++n;
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }

  void blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool at_end() {
    blanks();
    return rest_.empty();
  }
  bool is(char c) {
    blanks();
    return rest_.starts_with(c);
  }
  bool eat(char c) {
    if (!is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool eat(std::string_view text) {
    blanks();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  std::string_view rest_;
  std::unordered_map<std::string_view, size_t> places_;
  std::vector<int64_t> sizes_;
  std::set<Use> uses_;
};

}  // namespace

bool is_named_sharding(std::string_view text) {
  return NamedReader(text).run();
}

}  // namespace collet::hlo
