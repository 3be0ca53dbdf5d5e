// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>

#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {
namespace {

// The most participants for which groups in a short form are expanded.
constexpr int64_t kMostParticipants = int64_t{1} << 20;

}  // namespace

bool Parser::lists(List<const Dims>& out) {
  std::vector<Dims> all;
  if (!expect(Tok::LeftBrace, " before the lists")) return false;
  if (!is(Tok::RightBrace)) do {
      Dims one;
      if (!dims(one)) return false;
      all.push_back(one);
    } while (eat(Tok::Comma));
  out = module_.arena().list(all);
  return expect(Tok::RightBrace, " after the lists");
}

bool Parser::known_groups(const std::string& text, Groups& out) const {
  const auto it = groups_.find(text);
  if (it != groups_.end()) out.groups = it->second;
  return it != groups_.end();
}

bool Parser::keep_groups(std::span<const int64_t> ids, int64_t size, const std::string& text, Groups& out) {
  // Each participant counts as a member, and at most one group around it.
  const Status status = budget_.charge(2 * static_cast<int64_t>(ids.size()), 0, 2 * kMostParticipants);
  if (!status.ok()) return complain("replica groups: " + status.message());
  std::vector<Dims> all;
  for (size_t i = 0; i < ids.size(); i += static_cast<size_t>(size))
    all.push_back(module_.dims(ids.subspan(i, static_cast<size_t>(size))));
  out.groups = module_.arena().list(all);
  groups_.emplace(text, out.groups);
  return true;
}

bool Parser::groups(Groups& out) {
  if (is(Tok::LeftBrace)) return lists(out.groups);
  if (is(Tok::LeftSquare)) return iota_groups(out);
  if (is(Tok::Ident) && (tok_.text == "mesh" || tok_.text == "maximal_mesh")) return mesh_groups(out);
  return expected("replica groups: {{0,1},{2,3}}, [2,2]<=[4] or mesh[...] {...}");
}

namespace {

// Returns the product, or -1 if it is not positive or exceeds `limit`.
int64_t bounded_product(std::span<const int64_t> sizes, int64_t limit) {
  int64_t product = 1;
  for (int64_t s : sizes) {
    if (s <= 0 || s > limit / product) return -1;
    product *= s;
  }
  return product;
}

bool is_permutation_of_iota(std::span<const int64_t> list) {
  std::vector<bool> seen(list.size());
  for (int64_t v : list) {
    if (v < 0 || static_cast<size_t>(v) >= list.size() || seen[static_cast<size_t>(v)]) return false;
    seen[static_cast<size_t>(v)] = true;
  }
  return true;
}

// Returns the elements of an iota over `dims` after transposition, in row-major order of the transposed array.
// Dimensions of size 1 are dropped, which limits the number of dimensions to the bits of the number of elements.
std::vector<int64_t> transposed_iota(std::span<const int64_t> dims, std::span<const int64_t> permutation) {
  std::vector<int64_t> stride(dims.size(), 1), sizes, strides;
  int64_t total = 1;
  for (size_t i = dims.size(); i-- > 0; total *= dims[i]) stride[i] = total;
  for (int64_t d : permutation) {
    if (dims[static_cast<size_t>(d)] == 1) continue;
    sizes.push_back(dims[static_cast<size_t>(d)]);
    strides.push_back(stride[static_cast<size_t>(d)]);
  }
  std::vector<int64_t> index(sizes.size(), 0), out(static_cast<size_t>(total));
  for (int64_t& value : out) {
    value = 0;
    for (size_t i = 0; i < sizes.size(); ++i) value += index[i] * strides[i];
    for (size_t i = sizes.size(); i-- > 0;) {
      if (++index[i] < sizes[i]) break;
      index[i] = 0;
    }
  }
  return out;
}

bool permutes(std::span<const int64_t> permutation, std::span<const int64_t> dims) {
  return permutation.size() == dims.size() && is_permutation_of_iota(permutation);
}

std::string key_of(std::initializer_list<std::span<const int64_t>> lists) {
  std::string out;
  for (std::span<const int64_t> list : lists) {
    for (int64_t v : list) out += std::to_string(v) + ",";
    out += ';';
  }
  return out;
}

}  // namespace

bool Parser::iota_groups(Groups& out) {
  const char* begin = tok_.begin;
  std::vector<int64_t> sizes, reshape, permutation;
  if (!int_list(sizes, Tok::LeftSquare, Tok::RightSquare, Tok::Comma) ||
      !expect(Tok::LessEqual, " in [groups,size]<=[dims]") || !iota_assignment(reshape, permutation))
    return false;
  if (sizes.size() != 2) return complain(begin, "replica groups are written [groups,size]<=[dims]");
  const int64_t total = bounded_product(sizes, kMostParticipants);
  if (total < 0) return complain(begin, "replica groups have between 1 and 2^20 members");
  if (bounded_product(reshape, kMostParticipants) != total)
    return complain(begin, "replica groups: the two shapes differ in their number of members");
  if (!permutes(permutation, reshape)) return complain(begin, "replica groups: T(...) is no permutation");
  out.iota = true;
  out.iota_groups = sizes[0];
  out.iota_size = sizes[1];
  out.iota_dims = module_.dims(reshape);
  out.iota_permutation = module_.dims(permutation);
  const std::string text = key_of({sizes, reshape, permutation});
  return known_groups(text, out) || keep_groups(transposed_iota(reshape, permutation), sizes[1], text, out);
}

bool Parser::pairs(Dims& out) {
  const char* begin = tok_.begin;
  List<const Dims> all;
  if (!lists(all)) return false;
  std::vector<int64_t> flat;
  for (const Dims& pair : all) {
    if (pair.size() != 2) return complain(begin, "source_target_pairs is a list of pairs");
    flat.insert(flat.end(), pair.begin(), pair.end());
  }
  out = module_.dims(flat);
  return true;
}

namespace {

/// A part of an axis: the number of tiles outside of it on the axis, and its size.
struct Part {
  size_t axis;
  int64_t pre, size;
};

/// One digit of a device number, number / divisor % size, and its weight in the sort key.
struct Digit {
  int64_t divisor, size, weight;
};

// Returns the devices sorted by (axes that are not chosen, chosen axes), both in mesh order; the chosen parts are in
// the order in which they were named. Parts of size 1 are dropped, which limits the number of digits to the bits of the
// number of devices.
std::vector<int64_t> mesh_order(std::span<const int64_t> sizes, std::span<const Part> chosen,
                                std::span<const int64_t> devices) {
  std::vector<int64_t> stride(sizes.size());
  const auto total = static_cast<int64_t>(devices.size());
  int64_t inner = 1;
  for (size_t a = sizes.size(); a-- > 0; inner *= sizes[a]) stride[a] = inner;
  std::vector<Digit> digits;
  int64_t weight = 1;
  for (size_t i = chosen.size(); i-- > 0; weight *= chosen[i].size) {
    const Part& part = chosen[i];
    if (part.size == 1) continue;
    const int64_t post = sizes[part.axis] / (part.pre * part.size);
    digits.push_back({stride[part.axis] * post, part.size, weight});
  }
  std::vector<std::pair<std::pair<int64_t, int64_t>, int64_t>> keyed;
  for (int64_t d = 0; d < total; ++d) {
    int64_t inside = 0, outside = d;
    for (const Digit& digit : digits) {
      const int64_t value = d / digit.divisor % digit.size;
      inside += value * digit.weight;
      outside -= value * digit.divisor;
    }
    keyed.push_back({{outside, inside}, devices[static_cast<size_t>(d)]});
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<int64_t> out;
  for (const auto& entry : keyed) out.push_back(entry.second);
  return out;
}

}  // namespace

// Reads mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}: devices that differ only along the named axes form a group.
// Axes may be parts of one: 'b':(2)2.
bool Parser::mesh_groups(Groups& out) {
  const char* begin = tok_.begin;
  const char* p = begin;
  const char* end = lexer_.end();
  const auto refuse = [&](const char* why) { return complain(begin, std::string("replica groups on a mesh: ") + why); };
  const auto blanks = [&] {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) ++p;
  };
  const auto eat_char = [&](char c) {
    blanks();
    if (p == end || *p != c) return false;
    ++p;
    return true;
  };
  const auto eat_number = [&](int64_t& value) {
    blanks();
    const auto [rest, error] = std::from_chars(p, end, value);
    if (error != std::errc()) return false;
    p = rest;
    return true;
  };
  const auto eat_axis = [&](std::string_view& text) {
    blanks();
    const char* start = p;
    if (p < end && *p == '\'') {
      while (++p < end && *p != '\'' && *p != '\n') {
      }
      if (p == end || *p != '\'') return false;
      text = {start + 1, static_cast<size_t>(p - start - 1)};
      ++p;
      return true;
    }
    while (p < end && (std::isalnum(static_cast<unsigned char>(*p)) || *p == '_' || *p == '.' || *p == '-')) ++p;
    text = {start, static_cast<size_t>(p - start)};
    return p > start;
  };
  if (tok_.text == "maximal_mesh") return refuse("a maximal mesh has one device");
  p = tok_.end;
  std::vector<std::string_view> names;
  std::vector<int64_t> sizes;
  if (!eat_char('[')) return refuse("expects mesh['axis'=size,...]");
  while (!eat_char(']')) {
    int64_t size;
    std::string_view text;
    if (!eat_axis(text) || !eat_char('=') || !eat_number(size)) return refuse("expects mesh['axis'=size,...]");
    names.push_back(text);
    sizes.push_back(size);
    eat_char(',');
  }
  const int64_t total = bounded_product(sizes, kMostParticipants);
  if (total < 0) return refuse("a mesh has between 1 and 2^20 devices");
  std::vector<int64_t> devices(static_cast<size_t>(total));
  std::iota(devices.begin(), devices.end(), 0);
  if (eat_char(',')) {
    constexpr std::string_view kDevices = "device_ids=(";
    blanks();
    if (!std::string_view(p, static_cast<size_t>(end - p)).starts_with(kDevices)) return refuse("expects device_ids=(");
    lexer_.rewind(p + kDevices.size());
    next();
    if (is(Tok::LeftSquare)) {
      std::vector<int64_t> reshape, permutation;
      if (!iota_assignment(reshape, permutation)) return false;
      if (bounded_product(reshape, kMostParticipants) != total || !permutes(permutation, reshape))
        return refuse("device_ids do not fit the mesh");
      devices = transposed_iota(reshape, permutation);
    } else {
      devices.clear();
      int64_t id;
      do {
        if (!integer(id)) return false;
        devices.push_back(id);
      } while (eat(Tok::Comma));
      if (devices.size() != static_cast<size_t>(total)) return refuse("device_ids do not fit the mesh");
    }
    if (!is(Tok::RightParen)) return expected("')'");
    p = tok_.end;
  }
  std::vector<Part> chosen;
  if (!eat_char('{')) return refuse("expects {axes}");
  while (!eat_char('}')) {
    std::string_view text;
    if (!eat_axis(text)) return refuse("expects the name of an axis");
    const auto axis = std::find(names.begin(), names.end(), text) - names.begin();
    if (static_cast<size_t>(axis) == names.size()) return refuse("the mesh has no such axis");
    Part part{static_cast<size_t>(axis), 1, sizes[static_cast<size_t>(axis)]};
    if (eat_char(':') && (!eat_char('(') || !eat_number(part.pre) || !eat_char(')') || !eat_number(part.size)))
      return refuse("a part of an axis is written 'a':(pre)size");
    const int64_t full = sizes[static_cast<size_t>(axis)];
    if (part.pre < 1 || part.size < 1 || part.pre > full || part.size > full || full % (part.pre * part.size))
      return refuse("a part does not divide its axis");
    chosen.push_back(part);
    eat_char(',');
  }
  int64_t group = 1;
  for (const Part& part : chosen) {
    if (part.size > total / group) return refuse("axes overlap");
    group *= part.size;
  }
  if (total % group) return refuse("axes overlap");
  out.mesh = module_.arena().string({begin, static_cast<size_t>(p - begin)});
  lexer_.rewind(p);
  next();
  const std::string text(out.mesh);
  return known_groups(text, out) || keep_groups(mesh_order(sizes, chosen, devices), group, text, out);
}

}  // namespace collet::hlo::text
