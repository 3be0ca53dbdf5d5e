// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {

bool Parser::header() {
  module_.header().line = line_at(tok_.begin);
  next();
  std::string_view text;
  if (!name(text)) return false;
  module_.set_name(text);
  std::vector<std::string_view> seen;
  while (eat(Tok::Comma)) {
    if (!is(Tok::AttrName)) return expected_attribute("an attribute's name");
    const std::string_view attribute = tok_.text;
    if (std::find(seen.begin(), seen.end(), attribute) != seen.end())
      return complain("attribute '" + std::string(attribute) + "' is given twice");
    seen.push_back(attribute);
    if (!header_attribute(attribute)) return false;
  }
  return source_tables();
}

bool Parser::header_attribute(std::string_view attribute) {
  ModuleHeader& header = module_.header();
  const char* at = tok_.begin;
  next();
  if (attribute == "is_scheduled") return boolean(header.is_scheduled);
  if (attribute == "replica_count") return integer(header.replica_count);
  if (attribute == "num_partitions") return integer(header.num_partitions);
  if (attribute == "input_output_alias") return aliases();
  if (attribute == "buffer_donor") return donors();
  if (attribute == "alias_passthrough_params") return boolean(header.alias_passthrough_params);
  if (attribute == "entry_computation_layout") {
    header.layout_line = line_at(at);
    return entry_layout();
  }
  if (attribute == "frontend_attributes") return frontend_attributes(header.frontend_attributes);
  if (attribute == "allow_spmd_sharding_propagation_to_parameters") return bool_list(header.spmd_to_parameters);
  if (attribute == "allow_spmd_sharding_propagation_to_output") return bool_list(header.spmd_to_output);
  if (attribute == "origin_recovery_table") return recovery_table();
  static const std::vector<std::string_view> kKnown = {"is_scheduled",
                                                       "replica_count",
                                                       "num_partitions",
                                                       "input_output_alias",
                                                       "buffer_donor",
                                                       "alias_passthrough_params",
                                                       "entry_computation_layout",
                                                       "frontend_attributes",
                                                       "allow_spmd_sharding_propagation_to_parameters",
                                                       "allow_spmd_sharding_propagation_to_output",
                                                       "origin_recovery_table"};
  std::string message = "a module has no attribute '" + std::string(attribute) + "'";
  const std::string_view near = nearest_spelling(attribute, kKnown);
  if (!near.empty()) message += "; did you mean '" + std::string(near) + "'?";
  return complain(at, std::move(message));
}

// Reads the tables of source locations, which are kept as text: FileNames, FunctionNames, FileLocations, StackFrames.
bool Parser::source_tables() {
  const auto at_section = [this](std::string_view text) { return is(Tok::Ident) && tok_.text == text; };
  if (!at_section("FileNames") || peek() == Tok::LeftBrace || peek() == Tok::LeftParen) return true;
  const char* begin = tok_.begin;
  const char* end = begin;
  for (const auto& [section, strings] :
       {std::pair("FileNames", true), {"FunctionNames", true}, {"FileLocations", false}, {"StackFrames", false}}) {
    if (!at_section(section)) return expected(std::string("'") + section + "'");
    end = tok_.end;
    next();
    while (is(Tok::Int)) {
      next();
      end = tok_.end;
      if (strings) {
        if (!is(Tok::String)) return expected("a string");
        next();
      } else {
        if (!is(Tok::LeftBrace)) return expected("'{'");
        const std::string_view inside = lexer_.braces(tok_.begin);
        if (inside.empty()) return complain("'{' is not closed");
        end = inside.data() + inside.size();
        lexer_.rewind(end);
        next();
      }
    }
  }
  module_.header().verbatim = module_.arena().string({begin, static_cast<size_t>(end - begin)});
  return true;
}

bool Parser::bool_list(std::vector<bool>& out) {
  bool value = false;
  if (!is(Tok::LeftBrace)) {
    if (!boolean(value)) return false;
    out.push_back(value);
    return true;
  }
  next();
  if (!is(Tok::RightBrace)) do {
      if (!boolean(value)) return false;
      out.push_back(value);
    } while (eat(Tok::Comma));
  return expect(Tok::RightBrace, " at the end of the list");
}

bool Parser::alias_target(int64_t& number, Dims& index) {
  constexpr std::string_view kForm = " in (number, {index})";
  return expect(Tok::LeftParen, kForm) && integer(number) && expect(Tok::Comma, kForm) && shape_index(index);
}

bool Parser::aliases() {
  if (!expect(Tok::LeftBrace, " before the aliases")) return false;
  while (!is(Tok::RightBrace)) {
    InputOutputAlias alias;
    alias.line = line_at(tok_.begin);
    alias_places_.push_back(tok_.begin);
    if (!shape_index(alias.output_index) || !expect(Tok::Colon, " in {output}: (parameter, {index})") ||
        !alias_target(alias.parameter, alias.parameter_index))
      return false;
    if (eat(Tok::Comma)) {
      std::string_view kind;
      const char* at = tok_.begin;
      if (!name(kind)) return false;
      if (kind != "may-alias" && kind != "must-alias") return complain(at, "expects may-alias or must-alias");
      alias.must = kind == "must-alias";
    }
    if (!expect(Tok::RightParen, " at the end of an alias")) return false;
    module_.header().aliases.push_back(alias);
    if (!eat(Tok::Comma)) break;
  }
  return expect(Tok::RightBrace, " at the end of the aliases");
}

bool Parser::donors() {
  if (!expect(Tok::LeftBrace, " before the donated parameters")) return false;
  while (!is(Tok::RightBrace)) {
    BufferDonor donor;
    const char* at = tok_.begin;
    if (!alias_target(donor.parameter, donor.parameter_index) || !expect(Tok::RightParen, " in (parameter, {index})"))
      return false;
    if (donor.parameter < 0) return complain(at, "parameter number is negative");
    donor.line = line_at(at);
    module_.header().donors.push_back(donor);
    if (!eat(Tok::Comma)) break;
  }
  return expect(Tok::RightBrace, " at the end of the donated parameters");
}

bool Parser::entry_layout() {
  ModuleHeader& header = module_.header();
  if (!expect(Tok::LeftBrace, " before the entry's layout") || !expect(Tok::LeftParen, " before parameter shapes"))
    return false;
  const Shape* s = nullptr;
  while (!is(Tok::RightParen)) {
    if (!shape(s)) return false;
    header.entry_parameters.push_back(*s);
    if (is(Tok::RightParen)) break;
    if (!expect(Tok::Comma, " between parameter shapes")) return false;
  }
  next();
  if (!expect(Tok::Arrow, " before the result's shape") || !shape(s)) return false;
  header.entry_result = *s;
  header.has_entry_layout = true;
  return expect(Tok::RightBrace, " at the end of the entry's layout");
}

bool Parser::recovery_table() {
  if (!is(Tok::LeftBrace)) return expected("'{'");
  const char* open = tok_.begin;
  next();
  while (!is(Tok::RightBrace)) {
    if (!origin_array() || !expect(Tok::Colon, " in {origin} : {origin}, \"module\"") || !origin_array()) return false;
    if (eat(Tok::Comma)) {
      if (!is(Tok::String)) return expected("a string");
      next();
    }
  }
  module_.header().origin_recovery_table =
      module_.arena().string({open + 1, static_cast<size_t>(tok_.begin - open - 1)});
  next();
  return true;
}

// ---- attributes of the entry in the header ----

namespace {

const Shape* shape_at_index(const Shape* shape, const Dims& index) {
  for (int64_t i : index) {
    if (!shape->is_tuple() || i < 0 || static_cast<size_t>(i) >= shape->elements().size()) return nullptr;
    shape = &shape->element(static_cast<size_t>(i));
  }
  return shape;
}

}  // namespace

bool Parser::check_aliases() {
  const Shape& result = module_[module_[entry_].root].shape;
  // If an output has two aliases, the first one is used.
  std::set<std::vector<int64_t>> seen;
  std::vector<InputOutputAlias>& aliases = module_.header().aliases;
  for (size_t i = 0; i < aliases.size(); ++i) {
    const char* at = alias_places_[i];
    if (!shape_at_index(&result, aliases[i].output_index))
      return complain(at, "an alias names an output that the result " + result.to_string() + " does not have");
    if (aliases[i].parameter < 0) return complain(at, "an alias names a negative parameter number");
  }
  std::erase_if(aliases, [&](const InputOutputAlias& alias) {
    return !seen.emplace(alias.output_index.begin(), alias.output_index.end()).second;
  });
  return true;
}

}  // namespace collet::hlo::text
