// SPDX-License-Identifier: Apache-2.0
#include "hlo/proto/kept_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "hlo/ir/scanner.h"
#include "hlo/text/writer.h"

namespace collet::hlo::proto {
namespace {

constexpr int kMostNesting = 120;

constexpr std::string_view kBlanks = " ,\n\t\r";

/// Parses a number that is surrounded by nothing but blanks.
template <typename T>
bool whole_number(std::string_view text, T& out) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc() && text.find_first_not_of(kBlanks) == std::string_view::npos;
}

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
  });
}

bool read_origin(Scanner& in, std::vector<int64_t>& index, wire::OriginalValueProto* out) {
  if (in.eat('(')) {
    if (index.size() > kMostNesting) return false;
    for (int64_t i = 0; !in.eat(')'); ++i) {
      index.push_back(i);
      if (!read_origin(in, index, out)) return false;
      index.pop_back();
      in.eat(',');
    }
    return true;
  }
  if (!in.eat('{')) return false;
  auto* element = out->add_elements();
  for (int64_t i : index) element->add_shape_index(i);
  if (in.eat('}')) return true;
  auto* array = element->mutable_original_array();
  if (!in.quoted('"', *array->mutable_instruction_name())) return false;
  if (in.eat('{') && !in.numbers('}', array->mutable_shape_index())) return false;
  return in.eat('}');
}

using Origins = std::map<std::vector<int64_t>, const wire::OriginalArrayProto*>;

void write_origin(const Origins& origins, const Shape& shape, std::vector<int64_t>& index, std::string& out) {
  if (shape.is_tuple()) {
    out += '(';
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      if (i) out += ", ";
      index.push_back(static_cast<int64_t>(i));
      write_origin(origins, shape.element(i), index, out);
      index.pop_back();
    }
    out += ')';
    return;
  }
  out += '{';
  if (const auto it = origins.find(index); it != origins.end()) {
    text::write_string(out, it->second->instruction_name());
    const auto& inside = it->second->shape_index();
    if (inside.size()) {
      out += ' ';
      text::write_braces(out, {inside.data(), static_cast<size_t>(inside.size())});
    }
  }
  out += '}';
}

// Parses `1 {file_name_id=1 line=3}` and calls set(name, number) for each field.
template <typename Set>
bool read_row(Scanner& in, Set set) {
  if (!in.eat('{')) return false;
  while (!in.eat('}')) {
    const std::string_view name = in.word();
    int64_t value = 0;
    if (name.empty() || !in.eat('=') || !in.number(value)) return false;
    // In text the number of a parent is one larger than in the message.
    if (name == "parent_frame_id" && __builtin_sub_overflow(value, 1, &value)) return false;
    if (value != static_cast<int32_t>(value)) return false;
    set(name, static_cast<int32_t>(value));
    in.eat(',');
  }
  return true;
}

bool read_location(Scanner& in, wire::StackFrameIndexProto::FileLocation* out) {
  return read_row(in, [out](std::string_view name, int32_t value) {
    if (name == "file_name_id") out->set_file_name_id(value);
    if (name == "function_name_id") out->set_function_name_id(value);
    if (name == "line") out->set_line(value);
    if (name == "end_line") out->set_end_line(value);
    if (name == "column") out->set_column(value);
    if (name == "end_column") out->set_end_column(value);
  });
}

bool read_frame(Scanner& in, wire::StackFrameIndexProto::StackFrame* out) {
  return read_row(in, [out](std::string_view name, int32_t value) {
    if (name == "file_location_id") out->set_file_location_id(value);
    if (name == "parent_frame_id") out->set_parent_frame_id(value);
  });
}

}  // namespace

Status origin_to_wire(std::string_view text, wire::OriginalValueProto* out) {
  Scanner in(text);
  bool good = in.eat('{');
  if (good && in.eat("[synthetic_call]")) {
    out->set_is_synthetic_call(true);
    return ok_status();
  }
  std::vector<int64_t> index;
  // Without names, the text has no inner brackets.
  if (good && !in.is('}')) good = read_origin(in, index, out);
  if (good && in.eat('}') && in.at_end()) return ok_status();
  return invalid_argument("the origin is not understood: " + std::string(text.substr(0, 200)));
}

std::string origin_text(const wire::OriginalValueProto& in, const Shape& shape) {
  if (in.is_synthetic_call()) return "{[synthetic_call]}";
  if (!in.elements_size()) return "";
  std::string out = "{";
  Origins origins;
  for (const auto& element : in.elements())
    if (element.has_original_array())
      origins.emplace(std::vector<int64_t>(element.shape_index().begin(), element.shape_index().end()),
                      &element.original_array());
  std::vector<int64_t> index;
  write_origin(origins, shape, index, out);
  return out + "}";
}

Status statistics_to_wire(std::string_view text, wire::StatisticsViz* out) {
  // A name may have other characters than Scanner::word allows: it ends at '=', and a number at ',' or '}'.
  if (text.starts_with('{')) text.remove_prefix(1);
  for (bool first = true; !text.empty(); first = false) {
    const size_t equal = text.find('=');
    if (equal == std::string_view::npos) break;
    const size_t begin = std::min(text.find_first_not_of(kBlanks), equal);
    const std::string_view name = text.substr(begin, equal - begin);
    const size_t end = std::min(text.find_first_of(",}", equal), text.size());
    const std::string_view number = text.substr(equal + 1, end - equal - 1);
    text.remove_prefix(end);
    bool good = false;
    if (first && name == "visualizing_index") {
      int64_t index = 0;
      good = whole_number(number, index);
      out->set_stat_index_to_visualize(index);
    } else {
      double value = 0;
      good = whole_number(number, value);
      out->add_statistics()->set_stat_name(std::string(name));
      out->mutable_statistics(out->statistics_size() - 1)->set_stat_val(value);
    }
    if (!good) return invalid_argument("the statistics are not understood: " + std::string(number.substr(0, 100)));
  }
  return ok_status();
}

std::string statistics_text(const wire::StatisticsViz& in) {
  if (!in.statistics_size()) return "";
  std::string out = "{visualizing_index=" + std::to_string(in.stat_index_to_visualize());
  for (const auto& statistic : in.statistics()) {
    // HLO text cannot express other names, nor infinities.
    if (!is_name(statistic.stat_name()) || !std::isfinite(statistic.stat_val())) return "";
    out += "," + statistic.stat_name() + "=";
    text::write_real(out, statistic.stat_val(), false);
  }
  return out + "}";
}

bool source_tables_to_wire(std::string_view text, wire::StackFrameIndexProto* out) {
  enum { None, Files, Functions, Locations, Frames } table = None;
  Scanner in(text);
  while (!in.at_end()) {
    int64_t number = 0;
    if (!in.number(number)) {
      const std::string_view title = in.word();
      table = title == "FileNames"       ? Files
              : title == "FunctionNames" ? Functions
              : title == "FileLocations" ? Locations
              : title == "StackFrames"   ? Frames
                                         : None;
      if (table == None) return false;
      continue;
    }
    const bool good = table == Files       ? in.quoted('"', *out->add_file_names())
                      : table == Functions ? in.quoted('"', *out->add_function_names())
                      : table == Locations ? read_location(in, out->add_file_locations())
                      : table == Frames    ? read_frame(in, out->add_stack_frames())
                                           : false;
    if (!good) return false;
  }
  return true;
}

}  // namespace collet::hlo::proto
