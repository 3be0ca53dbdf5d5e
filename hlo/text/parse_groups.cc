// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>

#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {
namespace {

// At most this many participants are written out.
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

bool Parser::keep_groups(std::span<const int64_t> ids, int64_t size, Groups& out) {
  std::vector<Dims> all;
  for (size_t i = 0; i < ids.size(); i += static_cast<size_t>(size))
    all.push_back(module_.dims(ids.subspan(i, static_cast<size_t>(size))));
  out.groups = module_.arena().list(all);
  return true;
}

bool Parser::groups(Groups& out) {
  if (is(Tok::LeftBrace)) return lists(out.groups);
  if (is(Tok::LeftSquare)) return iota_groups(out);
  if (is(Tok::Ident) && (tok_.text == "mesh" || tok_.text == "maximal_mesh")) return mesh_groups(out);
  return expected("replica groups: {{0,1},{2,3}}, [2,2]<=[4] or mesh[...] {...}");
}

namespace {

// The product, or -1 where it is not positive or above `limit`.
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

// iota over `dims`, transposed: element at row-major position p of the transposed array.
std::vector<int64_t> transposed_iota(std::span<const int64_t> dims, std::span<const int64_t> permutation) {
  const size_t rank = dims.size();
  std::vector<int64_t> strides(rank, 1), index(rank, 0);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  int64_t total = 1;
  for (int64_t d : dims) total *= d;
  std::vector<int64_t> out(static_cast<size_t>(total));
  for (int64_t& value : out) {
    value = 0;
    for (size_t i = 0; i < rank; ++i) value += index[i] * strides[static_cast<size_t>(permutation[i])];
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < dims[static_cast<size_t>(permutation[i])]) break;
      index[i] = 0;
    }
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
  if (!is_permutation_of_iota(permutation)) return complain(begin, "replica groups: T(...) is no permutation");
  out.iota = true;
  out.iota_groups = sizes[0];
  out.iota_size = sizes[1];
  out.iota_dims = module_.dims(reshape);
  out.iota_permutation = module_.dims(permutation);
  return keep_groups(transposed_iota(reshape, permutation), sizes[1], out);
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

// mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}: the devices that differ only along the named axes form a group.
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
      if (bounded_product(reshape, kMostParticipants) != total || !is_permutation_of_iota(permutation))
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
  // Each axis is cut in up to three factors, so that parts of axes are axes themselves.
  struct Part {
    int64_t axis, pre, size;
  };
  std::vector<Part> chosen;
  if (!eat_char('{')) return refuse("expects {axes}");
  while (!eat_char('}')) {
    std::string_view text;
    if (!eat_axis(text)) return refuse("expects the name of an axis");
    const auto axis = std::find(names.begin(), names.end(), text) - names.begin();
    if (static_cast<size_t>(axis) == names.size()) return refuse("the mesh has no such axis");
    Part part{axis, 1, sizes[static_cast<size_t>(axis)]};
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
  // Sort devices by (what is not chosen, what is), both in mesh order; the chosen part in the order it was named in.
  std::vector<std::pair<std::pair<int64_t, int64_t>, int64_t>> keyed;
  for (int64_t d = 0; d < total; ++d) {
    std::vector<int64_t> index(sizes.size());
    for (int64_t rest = d, i = static_cast<int64_t>(sizes.size()); i-- > 0;) {
      index[static_cast<size_t>(i)] = rest % sizes[static_cast<size_t>(i)];
      rest /= sizes[static_cast<size_t>(i)];
    }
    int64_t inside = 0;
    for (const Part& part : chosen) {
      const auto a = static_cast<size_t>(part.axis);
      const int64_t post = sizes[a] / (part.pre * part.size);
      const int64_t digit = index[a] / post % part.size;
      inside = inside * part.size + digit;
    }
    int64_t outside = 0;
    for (size_t a = 0; a < sizes.size(); ++a) {
      int64_t rest = index[a];
      for (const Part& part : chosen) {
        if (static_cast<size_t>(part.axis) != a) continue;
        const int64_t post = sizes[a] / (part.pre * part.size);
        rest -= index[a] / post % part.size * post;
      }
      outside = outside * sizes[a] + rest;
    }
    keyed.push_back({{outside, inside}, devices[static_cast<size_t>(d)]});
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<int64_t> flat;
  for (const auto& entry : keyed) flat.push_back(entry.second);
  out.mesh = module_.arena().string({begin, static_cast<size_t>(p - begin)});
  lexer_.rewind(p);
  next();
  return keep_groups(flat, group, out);
}

}  // namespace collet::hlo::text
