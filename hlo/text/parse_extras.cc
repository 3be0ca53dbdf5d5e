// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "hlo/ir/metadata.h"
#include "hlo/ir/named_sharding.h"
#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {

// ---- sharding ----

bool Parser::sharding(const Sharding*& out) {
  const char* open = tok_.begin;
  if (!expect(Tok::LeftBrace, " before the sharding")) return false;
  Sharding result;
  if (is(Tok::LeftBrace) || is(Tok::RightBrace)) {
    result.kind = Sharding::Kind::Tuple;
    if (!is(Tok::RightBrace)) do {
        Sharding element;
        const char* inner = tok_.begin;
        if (!expect(Tok::LeftBrace, " before the sharding")) return false;
        const bool named = is(Tok::Ident) && (tok_.text == "mesh" || tok_.text == "maximal_mesh");
        if (!(named ? named_sharding(element, inner) : single_sharding(element))) return false;
        result.elements.push_back(std::move(element));
      } while (eat(Tok::Comma));
    if (!expect(Tok::RightBrace, " after the sharding")) return false;
  } else if (is(Tok::Ident) && (tok_.text == "mesh" || tok_.text == "maximal_mesh")) {
    if (!named_sharding(result, open)) return false;
  } else if (!single_sharding(result)) {
    return false;
  }
  out = module_.keep(std::move(result));
  return true;
}

// Reads a sharding on a named mesh, which is kept as text.
bool Parser::named_sharding(Sharding& out, const char* open) {
  const char* p = open;
  int depth = 0;
  for (; p < lexer_.end(); ++p) {
    if (*p == '{' || *p == '[' || *p == '(') ++depth;
    if ((*p == '}' || *p == ']' || *p == ')') && --depth == 0) break;
    if (*p == '\'' || *p == '"') {
      const char quote = *p;
      for (++p; p < lexer_.end() && *p != quote && *p != '\n'; ++p) {
      }
      if (p == lexer_.end() || *p != quote) return complain(open, "a quote is not closed in the sharding");
    }
  }
  if (p == lexer_.end() || *p != '}') return complain(open, "the sharding is not closed");
  out.kind = Sharding::Kind::Named;
  out.named.assign(open + 1, p);
  if (!is_named_sharding(out.named)) return complain(open, "the sharding on a mesh is not understood");
  lexer_.rewind(p + 1);
  next();
  return true;
}

bool Parser::single_sharding(Sharding& out) {
  const char* begin = tok_.begin;
  uint32_t kinds = 0;
  while (!is(Tok::RightBrace))
    if (!sharding_item(out, kinds)) return false;
  if (!finish_sharding(out, kinds, begin)) return false;
  next();
  return true;
}

bool Parser::sharding_item(Sharding& out, uint32_t& kinds) {
  const auto kind = [&](Sharding::Kind k) {
    kinds |= 1u << static_cast<int>(k);
    next();
    return true;
  };
  const auto group = [&](Sharding::Group g) {
    out.group = g;
    next();
    return integer(out.group_id);
  };
  if (is(Tok::Keyword)) switch (tok_.word) {
      case Word::Maximal:
        return kind(Sharding::Kind::Maximal);
      case Word::Replicated:
        return kind(Sharding::Kind::Replicated);
      case Word::Manual:
        return kind(Sharding::Kind::Manual);
      case Word::Unknown:
        return kind(Sharding::Kind::Unknown);
      case Word::Unreduced:
        return kind(Sharding::Kind::Unreduced);
      case Word::LastTileDimReplicate:
        out.last_tile_dim_replicate = true;
        next();
        return true;
      case Word::ShardAs:
        return group(Sharding::Group::As);
      case Word::ShardLike:
        return group(Sharding::Group::Like);
      default:
        return expected("a sharding");
    }
  if (is(Tok::Ident)) {
    const std::string_view near = nearest_spelling(
        tok_.text, {"replicated", "maximal", "manual", "unknown", "unreduced", "last_tile_dim_replicate"});
    if (!near.empty())
      return complain("there is no sharding '" + std::string(tok_.text) + "'; did you mean '" + std::string(near) +
                      "'?");
  }
  if (!is(Tok::AttrName)) return expected("a sharding");
  const std::string_view text = tok_.text;
  if (text != "device" && text != "devices" && text != "metadata" && text != "last_tile_dims") {
    const std::string_view near = nearest_spelling(text, {"device", "devices", "metadata", "last_tile_dims"});
    return complain("a sharding has no '" + std::string(text) + "='" +
                    (near.empty() ? "" : "; did you mean '" + std::string(near) + "='?"));
  }
  next();
  if (text == "device") {
    out.devices.resize(1);
    return integer(out.devices[0]);
  }
  if (text == "devices") return tile_assignment(out);
  if (text == "last_tile_dims") return sharding_kinds(out.last_tile_dims);
  const char* begin = tok_.begin;
  if (!(is(Tok::LeftBrace) && peek() == Tok::LeftBrace)) {
    const Metadata* ignored = nullptr;
    const char* end = lexer_.braces(begin).data() ? begin + lexer_.braces(begin).size() : begin;
    if (!metadata(ignored)) return false;
    out.metadata.assign(begin, end);
    return true;
  }
  const std::string_view whole = lexer_.braces(begin);
  if (!metadata_list()) return false;
  out.metadata = whole;
  return true;
}

bool Parser::metadata_list() {
  next();
  do {
    const Metadata* ignored = nullptr;
    if (!metadata(ignored)) return false;
  } while (eat(Tok::Comma));
  return expect(Tok::RightBrace, " after the metadata");
}

bool Parser::sharding_kinds(std::vector<Sharding::Kind>& out) {
  if (!expect(Tok::LeftBrace, " before the kinds")) return false;
  if (!is(Tok::RightBrace)) do {
      if (is_word(Word::Maximal))
        out.push_back(Sharding::Kind::Maximal);
      else if (is_word(Word::Replicated))
        out.push_back(Sharding::Kind::Replicated);
      else if (is_word(Word::Manual))
        out.push_back(Sharding::Kind::Manual);
      else if (is_word(Word::Unreduced))
        out.push_back(Sharding::Kind::Unreduced);
      else
        return expected("replicated, manual, maximal or unreduced");
      next();
    } while (eat(Tok::Comma));
  return expect(Tok::RightBrace, " after the kinds");
}

bool Parser::iota_assignment(std::vector<int64_t>& reshape, std::vector<int64_t>& permutation) {
  if (!int_list(reshape, Tok::LeftSquare, Tok::RightSquare, Tok::Comma)) return false;
  if (reshape.empty()) return complain("the dimensions of an assignment are missing");
  if (reshape.size() == 1) {
    permutation.assign(1, 0);
    return true;
  }
  if (!is(Tok::Ident) || tok_.text != "T") return expected("T(...), as there are several dimensions");
  next();
  const char* begin = tok_.begin;
  if (!int_list(permutation, Tok::LeftParen, Tok::RightParen, Tok::Comma)) return false;
  for (int64_t v : permutation)
    if (v < 0 || static_cast<size_t>(v) >= reshape.size())
      return complain(begin, "T(...) names dimension " + std::to_string(v) + " of " + std::to_string(reshape.size()));
  return true;
}

bool Parser::tile_assignment(Sharding& out) {
  out.devices.clear();
  if (!int_list(out.tile_dims, Tok::LeftSquare, Tok::RightSquare, Tok::Comma)) return false;
  if (out.tile_dims.empty()) return complain("the dimensions of the tile assignment are missing");
  if (eat(Tok::LessEqual)) {
    out.iota = true;
    return iota_assignment(out.reshape, out.permutation);
  }
  int64_t device;
  do {
    if (!integer(device)) return false;
    out.devices.push_back(device);
  } while (eat(Tok::Comma));
  return true;
}

bool Parser::finish_sharding(Sharding& out, uint32_t kinds, const char* at) {
  using Kind = Sharding::Kind;
  const auto has = [kinds](Kind k) { return kinds >> static_cast<int>(k) & 1; };
  for (Kind k : {Kind::Replicated, Kind::Manual, Kind::Unknown, Kind::Unreduced}) {
    // XLA checks the kinds in this order, with maximal after replicated.
    if (k == Kind::Manual && has(Kind::Maximal)) break;
    if (!has(k)) continue;
    if (!out.devices.empty()) return complain(at, "this kind of sharding has no devices");
    out.kind = k;
    return true;
  }
  if (has(Kind::Maximal)) {
    if (out.devices.size() != 1 || !out.tile_dims.empty())
      return complain(at, "a maximal sharding has exactly one device");
    out.kind = Kind::Maximal;
    out.device = out.devices[0];
    out.devices.clear();
    return true;
  }
  out.kind = Kind::Tiled;
  if (out.tile_dims.empty()) return complain(at, "a tiled sharding has devices=[...]");
  if (out.iota) {
    if (out.reshape.size() != out.permutation.size())
      return complain(at, "the assignment has " + std::to_string(out.reshape.size()) + " dimensions, but T(...) has " +
                              std::to_string(out.permutation.size()));
    return true;
  }
  if (out.devices.size() <= 1) return complain(at, "a tiled sharding has more than one device");
  int64_t tiles = 1;
  for (int64_t d : out.tile_dims)
    if (d < 0 || __builtin_mul_overflow(tiles, d, &tiles)) return complain(at, "the tile assignment is too large");
  if (tiles != static_cast<int64_t>(out.devices.size()))
    return complain(at, "the tile assignment has " + std::to_string(tiles) + " tiles, but " +
                            std::to_string(out.devices.size()) + " devices");
  return true;
}

// ---- frontend attributes, backend config ----

bool Parser::json(std::string_view& out) {
  const std::string_view whole = lexer_.braces(tok_.begin);
  if (whole.empty()) return complain("the JSON dictionary is not closed");
  out = module_.arena().string(whole);
  lexer_.rewind(whole.data() + whole.size());
  next();
  return true;
}

bool Parser::frontend_attributes(std::vector<FrontendAttribute>& out) {
  if (!expect(Tok::LeftBrace, " before the frontend attributes")) return false;
  if (!is(Tok::RightBrace)) do {
      if (!is(Tok::AttrName)) return expected_attribute("an attribute's name");
      FrontendAttribute attribute;
      attribute.name = module_.arena().string(tok_.text);
      next();
      attribute.is_json = is(Tok::LeftBrace);
      if (!(attribute.is_json ? json(attribute.value) : string(attribute.value))) return false;
      const auto same = std::find_if(out.begin(), out.end(), [&](const auto& a) { return a.name == attribute.name; });
      if (out.size() < 1000 && same != out.end())
        *same = attribute;
      else
        out.push_back(attribute);
    } while (eat(Tok::Comma));
  return expect(Tok::RightBrace, " after the frontend attributes");
}

bool Parser::backend_config(Extras& out) {
  out.backend_config_is_json = is(Tok::LeftBrace);
  return out.backend_config_is_json ? json(out.backend_config) : string(out.backend_config);
}

// ---- small attributes ----

bool Parser::parameter_replication(List<const bool>& out) {
  std::vector<bool> list;
  if (!is(Tok::LeftBrace)) return expected("'{'");
  if (!bool_list(list)) return false;
  const auto flat = std::make_unique<bool[]>(list.size());
  std::copy(list.begin(), list.end(), flat.get());
  out = module_.arena().list<const bool>(std::span<const bool>(flat.get(), list.size()));
  return true;
}

bool Parser::control_predecessors(List<const InstrId>& out) {
  if (!expect(Tok::LeftBrace, " before the names")) return false;
  std::vector<InstrId> list;
  do {
    const char* begin = tok_.begin;
    std::string_view text;
    if (!name(text)) return false;
    const uint32_t found = scope().names.find(text);
    if (found == kRefused) return false;
    if (found == NameTable::kNone) return undefined("instruction", text, scope().names, begin);
    list.push_back(static_cast<InstrId>(found));
  } while (eat(Tok::Comma));
  out = module_.arena().list<const InstrId>(std::span<const InstrId>(list));
  return expect(Tok::RightBrace, " after the names");
}

bool Parser::statistics(std::string_view& out) {
  const char* open = tok_.begin;
  if (!expect(Tok::LeftBrace, " before the statistics")) return false;
  for (bool first = true; !is(Tok::RightBrace); first = false) {
    if (!first && !expect(Tok::Comma, " between statistics")) return false;
    if (!is(Tok::AttrName)) return expected_attribute("the name of a statistic");
    next();
    if (!is(Tok::Int) && (first || !is(Tok::Decimal))) return expected("a number");
    next();
  }
  out = module_.arena().string({open, static_cast<size_t>(tok_.end - open)});
  next();
  return true;
}

bool Parser::origin_array() {
  if (!expect(Tok::LeftBrace, " before an origin")) return false;
  if (eat(Tok::String) && is(Tok::LeftBrace)) {
    Dims ignored;
    if (!shape_index(ignored)) return false;
  }
  return expect(Tok::RightBrace, " after an origin");
}

// Reads {({"a"}, {"b" {0}})} or {[synthetic_call]}: checked, and kept as text, with braces.
bool Parser::origin(std::string_view& out) {
  const char* open = tok_.begin;
  if (!expect(Tok::LeftBrace, " before the origin")) return false;
  int depth = 0;
  if (eat(Tok::LeftSquare)) {
    if (!is(Tok::Ident) || tok_.text != "synthetic_call") return expected("synthetic_call");
    next();
    if (!expect(Tok::RightSquare, " after synthetic_call")) return false;
    if (!is(Tok::RightBrace)) return expected("'}'");
  }
  while (!is(Tok::RightBrace)) {
    if (is(Tok::LeftBrace)) {
      if (!origin_array()) return false;
      continue;
    }
    if (is(Tok::LeftParen)) {
      ++depth;
    } else if (is(Tok::RightParen)) {
      if (--depth < 0) return complain("unbalanced ')' in the origin");
    } else if (!is(Tok::Comma) || depth == 0) {
      return expected("an origin");
    }
    next();
  }
  out = module_.arena().string({open, static_cast<size_t>(tok_.end - open)});
  next();
  return true;
}

// ---- metadata ----

bool Parser::metadata(const Metadata*& out) {
  if (!expect(Tok::LeftBrace, " before the metadata")) return false;
  Metadata result;
  uint32_t seen = 0;
  while (!is(Tok::RightBrace)) {
    eat(Tok::Comma);
    if (!metadata_item(result, seen)) return false;
  }
  next();
  out = is_empty(result) ? nullptr : module_.arena().make<Metadata>(result);
  return true;
}

bool Parser::metadata_item(Metadata& out, uint32_t& seen) {
  const std::pair<std::string_view, std::string_view*> strings[] = {{"op_type", &out.op_type},
                                                                    {"op_name", &out.op_name},
                                                                    {"source_file", &out.source_file},
                                                                    {"deduplicated_name", &out.deduplicated_name},
                                                                    {"scheduling_name", &out.scheduling_name}};
  const std::pair<std::string_view, int64_t*> numbers[] = {{"source_line", &out.source_line},
                                                           {"source_end_line", &out.source_end_line},
                                                           {"source_column", &out.source_column},
                                                           {"source_end_column", &out.source_end_column},
                                                           {"stack_frame_id", &out.stack_frame_id}};
  if (!is(Tok::AttrName)) return expected_attribute("an item of metadata");
  const std::string_view text = tok_.text;
  const auto once = [&](size_t bit) {
    if (seen >> bit & 1) return complain("'" + std::string(text) + "' is given twice");
    seen |= 1u << bit;
    next();
    return true;
  };
  for (size_t i = 0; i < std::size(strings); ++i)
    if (text == strings[i].first) return once(i) && string(*strings[i].second);
  for (size_t i = 0; i < std::size(numbers); ++i) {
    if (text != numbers[i].first) continue;
    if (!once(8 + i)) return false;
    const char* begin = tok_.begin;
    if (!integer(*numbers[i].second)) return false;
    return *numbers[i].second == static_cast<int32_t>(*numbers[i].second) ||
           complain(begin, "the number does not fit 32 bits");
  }
  if (text == "profile_type") return once(16) && dims(out.profile_type);
  std::vector<std::string_view> known = {"profile_type"};
  for (const auto& s : strings) known.push_back(s.first);
  for (const auto& n : numbers) known.push_back(n.first);
  const std::string_view near = nearest_spelling(text, known);
  return complain("metadata has no '" + std::string(text) + "'" +
                  (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?"));
}

// ---- result_accuracy ----

bool Parser::result_accuracy(const ResultAccuracy*& out) {
  ResultAccuracy result;
  if (!expect(Tok::LeftBrace, " before the accuracy")) return false;
  if (is(Tok::AttrName) && tok_.text == "mode") {
    next();
    if (!is(Tok::Ident) || (tok_.text != "default" && tok_.text != "highest")) return expected("default or highest");
    result.mode = tok_.text == "default" ? "default" : "highest";
    next();
  } else if (is(Tok::AttrName) && tok_.text == "tolerance") {
    next();
    result.is_mode = false;
    if (!tolerance(result)) return false;
  } else {
    return expected("mode= or tolerance=");
  }
  out = module_.arena().make<ResultAccuracy>(result);
  return expect(Tok::RightBrace, " after the accuracy");
}

bool Parser::tolerance(ResultAccuracy& out) {
  if (!expect(Tok::LeftBrace, " before the tolerance")) return false;
  if (!is(Tok::RightBrace)) do {
      if (!is(Tok::AttrName)) return expected_attribute("atol=, rtol= or ulps=");
      const std::string_view text = tok_.text;
      if (text != "atol" && text != "rtol" && text != "ulps") return expected("atol=, rtol= or ulps=");
      next();
      const char* begin = tok_.begin;
      double value;
      if (!number(value)) return false;
      if (text == "ulps") {
        if (!(value >= -9e15 && value <= 9e15)) return complain(begin, "ulps is out of range");
        out.ulps = static_cast<int64_t>(value);
      } else {
        (text == "atol" ? out.atol : out.rtol) = value;
      }
    } while (eat(Tok::Comma));
  return expect(Tok::RightBrace, " after the tolerance");
}

}  // namespace collet::hlo::text
