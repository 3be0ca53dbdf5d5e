// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {

namespace {

bool is_permutation(std::span<const int64_t> list) {
  std::vector<bool> seen(list.size());
  for (int64_t v : list) {
    if (v < 0 || static_cast<size_t>(v) >= list.size() || seen[static_cast<size_t>(v)]) return false;
    seen[static_cast<size_t>(v)] = true;
  }
  return true;
}

// XLA's parser checks the layouts of shapes inside tuples; other layouts are left to the verifier.
bool valid_in_tuple(const Shape& shape) {
  if (shape.is_array() && shape.element_count() == INT64_MAX) return false;
  const Layout* l = shape.layout();
  if (!l) return true;
  if (!is_permutation(l->minor_to_major) || l->element_size_bits < 0) return false;
  if (l->index_type != Type::Invalid || l->pointer_type != Type::Invalid) return false;
  for (const Tile& tile : l->tiles) {
    if (tile.dims.empty()) return false;
    for (int64_t d : tile.dims)
      if (d <= 0 && d != Tile::kCombine) return false;
  }
  for (const SplitConfig& split : l->splits) {
    if (split.dimension < 0 || split.dimension >= shape.rank()) return false;
    for (int64_t i : split.indices)
      if (i <= 0 || i >= shape.dim(static_cast<int>(split.dimension))) return false;
  }
  return true;
}

}  // namespace

bool Parser::at_shape() {
  return is(Tok::Type) || is(Tok::LeftParen) || (is(Tok::Ident) && tok_.text == "b" && peek() == Tok::LeftParen);
}

// Returns the text of the shape that begins at the current token, as a key for the cache; empty if its end cannot be
// determined cheaply.
std::string_view Parser::shape_extent() const {
  const char* p = tok_.begin;
  const char* end = lexer_.end();
  if (is(Tok::LeftParen)) {
    int depth = 0;
    for (; p < end; ++p) {
      if (*p == '(') ++depth;
      if (*p == ')' && --depth == 0) return {tok_.begin, static_cast<size_t>(p + 1 - tok_.begin)};
      if (*p == '/' || *p == '"' || *p == '\n') {
        // Allows only comments such as /*index=5*/, which contain no brackets.
        if (*p != '/' || end - p < 2 || p[1] != '*') return {};
        for (p += 2; p < end && *p != '/'; ++p)
          if (*p == '(' || *p == ')' || *p == '\n') return {};
        if (p >= end || p[-1] != '*') return {};
      }
    }
    return {};
  }
  if (!is(Tok::Type)) return {};
  p = tok_.end;
  if (p == end || *p != '[') return {};
  while (p < end && *p != ']') {
    if (*p == '\n' || *p == '/') return {};
    ++p;
  }
  if (p == end) return {};
  ++p;
  if (end - p >= 2 && *p == '{' && ((p[1] >= '0' && p[1] <= '9') || p[1] == ':')) {
    const char* q = p;
    while (q < end && *q != '}') {
      if (*q == '\n' || *q == '/' || *q == '[') return {};
      ++q;
    }
    if (q == end) return {};
    p = q + 1;
  } else if (p < end && (*p == '{' || *p == ' ')) {
    // A layout after blanks, or a form that only the parser can recognise: it is read by tokens unless a word follows.
    const char* q = p;
    while (q < end && *q == ' ') ++q;
    if (q == end || *q == '{' || *q == '/' || *q == '\n') return {};
  }
  return {tok_.begin, static_cast<size_t>(p - tok_.begin)};
}

bool Parser::shape(const Shape*& out) {
  const std::string_view extent = shape_extent();
  if (!extent.empty()) {
    const uint32_t found = shape_names_.find(extent);
    if (found != NameTable::kNone) {
      out = &shapes_[found];
      lexer_.rewind(extent.data() + extent.size());
      next();
      return true;
    }
  }
  Shape read;
  if (!enter()) return false;
  const bool ok = read_shape(read);
  leave();
  if (!ok) return false;
  shapes_.push_back(std::move(read));
  out = &shapes_.back();
  // The extent was an estimate, so the shape is cached only if the parser stopped at its end.
  if (!extent.empty() && tok_.begin >= extent.data() + extent.size() && shape_end_ == extent.data() + extent.size())
    shape_names_.insert(extent, static_cast<uint32_t>(shapes_.size() - 1));
  return true;
}

Type Parser::widened(Type type) const {
  if (!options_.floats_as_f64) return type;
  if (type == Type::F32 || type == Type::F16 || type == Type::BF16) return Type::F64;
  return type == Type::C64 ? Type::C128 : type;
}

bool Parser::read_shape(Shape& out) {
  if (is(Tok::Type)) return read_array(out);
  const bool buffer = is(Tok::Ident) && tok_.text == "b" && peek() == Tok::LeftParen;
  if (buffer) next();
  if (!is(Tok::LeftParen)) {
    if (!is(Tok::Ident)) return expected("a shape");
    std::vector<std::string_view> known;
    for (int i = 1; i < COLLET_TYPE_LIMIT; ++i)
      if (const auto text = type_info(static_cast<Type>(i)).text; !text.empty()) known.push_back(text);
    const std::string_view near = nearest_spelling(tok_.text, known);
    if (near.empty()) return expected("a shape");
    return complain("there is no element type '" + std::string(tok_.text) + "'; did you mean '" + std::string(near) +
                    "'?");
  }
  next();
  std::vector<Shape> elements;
  if (!is(Tok::RightParen)) do {
      const Shape* element = nullptr;
      if (!shape(element)) return false;
      if (!buffer && !valid_in_tuple(*element))
        return complain("an element of a tuple has a malformed shape or layout");
      elements.push_back(*element);
    } while (!buffer && eat(Tok::Comma));
  if (buffer) {
    if (elements.empty() || !elements[0].is_array()) return complain("a buffer holds an array");
    out = Shape::buffer(std::move(elements[0]));
  } else {
    out = Shape::tuple(std::move(elements));
  }
  shape_end_ = tok_.end;
  return expect(Tok::RightParen, " at the end of the shape");
}

bool Parser::read_array(Shape& out) {
  const Type type = widened(tok_.type);
  next();
  std::vector<int64_t> sizes;
  std::vector<bool> dynamic;
  if (!dimension_sizes(sizes, dynamic)) return false;
  out = Shape::array(type, sizes, dynamic);
  if (!is(Tok::LeftBrace)) return true;
  const Tok after = peek();
  if (after != Tok::Int && after != Tok::Colon) return true;
  Layout l;
  const char* begin = tok_.begin;
  if (!layout(l)) return false;
  if (l.minor_to_major.size() != sizes.size())
    return complain(begin, "the shape has " + std::to_string(sizes.size()) + " dimensions, but its layout " +
                               std::to_string(l.minor_to_major.size()));
  if (l.physical_shape) return complain(begin, "a physical shape belongs to sparse arrays, which are not supported");
  out = out.with_layout(std::move(l));
  return true;
}

bool Parser::dimension_sizes(std::vector<int64_t>& out, std::vector<bool>& dynamic) {
  if (!expect(Tok::LeftSquare, " before the dimensions")) return false;
  if (!is(Tok::RightSquare)) do {
      if (eat(Tok::Question)) {
        out.push_back(kUnbounded);
        dynamic.push_back(true);
        continue;
      }
      dynamic.push_back(eat(Tok::LessEqual));
      const char* begin = tok_.begin;
      int64_t size;
      if (!integer(size)) return false;
      if (size < 0) return complain(begin, "a dimension is not negative and fits 63 bits");
      out.push_back(size);
    } while (eat(Tok::Comma) && out.size() <= kMostDimensions);
  if (out.size() > kMostDimensions)
    return complain("an array has at most " + std::to_string(kMostDimensions) + " dimensions");
  shape_end_ = tok_.end;
  return expect(Tok::RightSquare, " after the dimensions");
}

// ---- layouts ----

bool Parser::layout(Layout& out) {
  next();
  if (is(Tok::Int)) do {
      int64_t d;
      if (!integer(d)) return false;
      out.minor_to_major.push_back(d);
    } while (eat(Tok::Comma));
  if (eat(Tok::Colon) && !layout_parts(out)) return false;
  shape_end_ = tok_.end;
  return expect(Tok::RightBrace, " after the layout");
}

bool Parser::layout_parts(Layout& out) {
  const auto part = [this](std::string_view text) {
    if (!is(Tok::Ident) || tok_.text != text) return false;
    next();
    return true;
  };
  if (part("D") && !level_types(out.dim_level_types)) return false;
  if (part("T") && !tiles(out.tiles)) return false;
  if (part("L") && !layout_number(out.tail_padding_alignment)) return false;
  if (eat(Tok::Hash) && !layout_type(out.index_type)) return false;
  if (eat(Tok::Star) && !layout_type(out.pointer_type)) return false;
  if (part("E") && !layout_number(out.element_size_bits)) return false;
  if (part("S") && !layout_number(out.memory_space)) return false;
  if (part("SC") && !split_configs(out.splits)) return false;
  if (part("P")) {
    const Shape* physical = nullptr;
    if (!expect(Tok::LeftParen, " before the physical shape") || !shape(physical) ||
        !expect(Tok::RightParen, " after the physical shape"))
      return false;
    out.physical_shape = std::make_shared<const Shape>(*physical);
  }
  return !part("M") || layout_number(out.metadata_prefix_bytes);
}

bool Parser::level_types(std::string& out) {
  if (!expect(Tok::LeftParen, " before the level types")) return false;
  do {
    if (!is(Tok::Ident) || tok_.text.size() != 1 ||
        std::string_view("DCSH").find(tok_.text[0]) == std::string_view::npos)
      return expected("a level type: D, C, S or H");
    if (!out.empty()) out += ',';
    out += tok_.text;
    next();
    if (eat(Tok::Plus)) out += '+';
    if (eat(Tok::Tilde)) out += '~';
  } while (eat(Tok::Comma));
  return expect(Tok::RightParen, " after the level types");
}

bool Parser::tiles(std::vector<Tile>& out) {
  do {
    Tile tile;
    if (!expect(Tok::LeftParen, " before the tile")) return false;
    if (!is(Tok::RightParen)) do {
        int64_t size = Tile::kCombine;
        if (!eat(Tok::Star) && !integer(size)) return false;
        tile.dims.push_back(size);
      } while (eat(Tok::Comma));
    if (!expect(Tok::RightParen, " after the tile")) return false;
    out.push_back(std::move(tile));
  } while (is(Tok::LeftParen));
  return true;
}

bool Parser::layout_number(int64_t& out) {
  return expect(Tok::LeftParen, " in the layout") && integer(out) && expect(Tok::RightParen, " in the layout");
}

bool Parser::layout_type(Type& out) {
  if (!expect(Tok::LeftParen, " in the layout")) return false;
  if (!is(Tok::Type) || !is_integer(tok_.type)) return expected("an integer type");
  out = tok_.type;
  next();
  return expect(Tok::RightParen, " in the layout");
}

bool Parser::split_configs(std::vector<SplitConfig>& out) {
  do {
    SplitConfig config;
    if (!expect(Tok::LeftParen, " before a split") || !integer(config.dimension) ||
        !int_list(config.indices, Tok::Colon, Tok::RightParen, Tok::Comma))
      return false;
    out.push_back(std::move(config));
  } while (is(Tok::LeftParen));
  return true;
}

}  // namespace collet::hlo::text
