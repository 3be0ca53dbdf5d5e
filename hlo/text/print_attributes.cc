// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/text/lexer.h"
#include "hlo/text/printer_impl.h"
#include "hlo/text/writer.h"

namespace collet::hlo::text {
namespace {

template <typename T>
const T& at(const void* attrs, const FieldInfo& f) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(attrs) + f.offset);
}

bool all_are(const Dims& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [value](int64_t v) { return v == value; });
}

void write_sizes(std::string& out, std::string_view name, const Dims& list, int64_t usual) {
  if (list.empty() || all_are(list, usual)) return;
  out += ' ';
  out += name;
  out += '=';
  write_list(out, list, 'x');
}

void write_window(std::string& out, const Window& w) {
  out += "{size=";
  write_list(out, w.size, 'x');
  write_sizes(out, "stride", w.stride, 1);
  if (!all_are(w.padding_low, 0) || !all_are(w.padding_high, 0)) {
    out += " pad=";
    for (size_t i = 0; i < w.rank(); ++i) {
      if (i) out += 'x';
      write(out, w.low_at(i));
      out += '_';
      write(out, w.high_at(i));
    }
  }
  write_sizes(out, "lhs_dilate", w.base_dilation, 1);
  write_sizes(out, "rhs_dilate", w.window_dilation, 1);
  write_sizes(out, "rhs_reversal", w.reversal, 0);
  out += '}';
}

void write_slices(std::string& out, const SliceRanges& s) {
  out += '{';
  for (size_t i = 0; i < s.start.size(); ++i) {
    if (i) out += ", ";
    out += '[';
    write(out, s.start[i]);
    out += ':';
    write(out, s.limit[i]);
    if (i < s.stride.size() && s.stride[i] != 1) {
      out += ':';
      write(out, s.stride[i]);
    }
    out += ']';
  }
  out += '}';
}

void write_padding(std::string& out, const Padding& p) {
  for (size_t i = 0; i < p.low.size(); ++i) {
    if (i) out += 'x';
    write(out, p.low[i]);
    out += '_';
    write(out, p.high[i]);
    if (i < p.interior.size() && p.interior[i] != 0) {
      out += '_';
      write(out, p.interior[i]);
    }
  }
}

std::string label_part(int64_t first_at, char first, int64_t second_at, char second, const Dims& spatial) {
  int64_t size = std::max(first_at, second_at) + 1;
  for (int64_t d : spatial) size = std::max(size, d + 1);
  std::string part(static_cast<size_t>(std::clamp<int64_t>(size, 0, 64)), '?');
  const auto put = [&](int64_t at, char c) {
    if (at >= 0 && static_cast<size_t>(at) < part.size()) part[static_cast<size_t>(at)] = c;
  };
  put(first_at, first);
  put(second_at, second);
  for (size_t i = 0; i < spatial.size(); ++i) put(spatial[i], static_cast<char>('0' + i));
  return part;
}

// Prints the labels as they were written if they agree with the numbers; else makes them from the numbers.
std::string labels_text(const DimLabels& l) {
  const std::string parts[] = {label_part(l.input_batch, 'b', l.input_feature, 'f', l.input_spatial),
                               label_part(l.kernel_input_feature, 'i', l.kernel_output_feature, 'o', l.kernel_spatial),
                               label_part(l.output_batch, 'b', l.output_feature, 'f', l.output_spatial)};
  std::string made;
  bool written_fits = !l.text.empty();
  std::string_view rest = l.text;
  for (int i = 0; i < 3; ++i) {
    const std::string_view separator = i == 0 ? "_" : "->";
    const size_t end = i < 2 ? std::min(rest.find(separator), rest.size()) : rest.size();
    const std::string_view written = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + (i < 2 ? separator.size() : 0)));
    written_fits = written_fits && written.starts_with(parts[i]) &&
                   written.find_first_not_of('?', parts[i].size()) == std::string_view::npos;
    std::string part = parts[i];
    while (part.size() < 2) part += '?';
    made += (i == 0 ? "" : i == 1 ? "_" : "->") + part;
  }
  return written_fits ? std::string(l.text) : made;
}

void write_lists(std::string& out, const List<const Dims>& lists) {
  out += '{';
  for (size_t i = 0; i < lists.size(); ++i) {
    if (i) out += ',';
    write_braces(out, lists[i]);
  }
  out += '}';
}

void write_groups(std::string& out, const Groups& g) {
  if (!g.mesh.empty()) {
    out += g.mesh;
    return;
  }
  if (!g.iota) return write_lists(out, g.groups);
  out += '[';
  write(out, g.iota_groups);
  out += ',';
  write(out, g.iota_size);
  out += "]<=[";
  write_list(out, g.iota_dims);
  out += ']';
  if (g.iota_dims.size() < 2) return;
  out += "T(";
  write_list(out, g.iota_permutation);
  out += ')';
}

void write_pairs(std::string& out, const Dims& pairs) {
  out += '{';
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (i) out += ',';
    write_braces(out, std::span<const int64_t>(pairs.data() + i, 2));
  }
  out += '}';
}

void write_aliasing(std::string& out, const List<const AliasEntry>& list) {
  out += '{';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ", ";
    write_braces(out, list[i].output_index);
    out += ": (";
    write(out, list[i].operand);
    out += ", ";
    write_braces(out, list[i].operand_index);
    out += ')';
  }
  out += '}';
}

// True if the field is optional and has the value that is omitted.
bool is_left_out(const FieldInfo& f, const void* attrs) {
  switch (f.kind) {
    case FieldKind::I64: {
      const int64_t value = at<int64_t>(attrs, f);
      const bool count = f.text == "feature_group_count" || f.text == "batch_group_count";
      return value == 0 || (count && value == 1);
    }
    case FieldKind::U32:
      return at<uint32_t>(attrs, f) == 0;
    case FieldKind::BOOL:
    case FieldKind::NOT_BOOL:
      return !at<bool>(attrs, f);
    case FieldKind::F32:
      return at<float>(attrs, f) == 0;
    case FieldKind::ENUM:
      return at<uint32_t>(attrs, f) == 0;
    case FieldKind::DIMS:
    case FieldKind::PRECISIONS:
    case FieldKind::PAIRS:
      return at<Dims>(attrs, f).empty();
    case FieldKind::STRING:
      return at<std::string_view>(attrs, f).empty();
    case FieldKind::DIM_LABELS: {
      const auto& l = at<DimLabels>(attrs, f);
      return l.text.empty() && l.input_batch < 0 && l.kernel_input_feature < 0 && l.output_batch < 0;
    }
    case FieldKind::SHAPE:
      return at<const Shape*>(attrs, f) == nullptr;
    case FieldKind::SHAPES:
      return at<List<const Shape* const>>(attrs, f).empty();
    case FieldKind::LITERAL:
      return at<const Literal*>(attrs, f) == nullptr;
    case FieldKind::ALIASING:
      return at<List<const AliasEntry>>(attrs, f).empty();
    case FieldKind::LISTS:
      return at<List<const Dims>>(attrs, f).empty();
    default:
      return false;
  }
}

bool is_written(const FieldInfo& f, const Instruction& instr) {
  if (f.kind == FieldKind::WINDOW) return !at<Window>(instr.attrs, f).size.empty();
  if (f.required || !is_left_out(f, instr.attrs)) return true;
  // XLA requires broadcast's dimensions except for scalars, and treats a missing transpose_a differently from its
  // default.
  if (instr.op == Op::BROADCAST || f.text == "transpose_a") return true;
  if (f.text == "operand_layout_constraints") return instr.as<CustomCallAttrs>().constrains_layouts;
  return f.text == "channel_id" && instr.extras && instr.extras->zero_channel;
}

constexpr std::string_view kPrecisions[] = {"default", "high", "highest"};

}  // namespace

void Printer::fields(const Instruction& instr) {
  for (const FieldInfo& f : record_fields(op_info(instr.op).record)) {
    if (f.text.empty()) continue;
    if (!is_written(f, instr)) continue;
    out_ += ", ";
    out_ += f.text;
    out_ += '=';
    field(f, instr.attrs);
  }
}

void Printer::field(const FieldInfo& f, const void* attrs) {
  switch (f.kind) {
    case FieldKind::I64: {
      const bool plus_one = f.text == "inferred_dimension" || f.text == "cross_program_prefetch_index";
      return write(out_, at<int64_t>(attrs, f) - plus_one);
    }
    case FieldKind::U32:
      return write(out_, at<uint32_t>(attrs, f));
    case FieldKind::BOOL:
      out_ += at<bool>(attrs, f) ? "true" : "false";
      return;
    case FieldKind::NOT_BOOL:
      out_ += at<bool>(attrs, f) ? "false" : "true";
      return;
    case FieldKind::F32:
      return write_real(out_, at<float>(attrs, f), true);
    case FieldKind::ENUM:
      out_ += enum_text(f.values, at<uint32_t>(attrs, f));
      return;
    case FieldKind::DIM:
      return write_braces(out_, std::span<const int64_t>(&at<int64_t>(attrs, f), 1));
    case FieldKind::DIMS:
      return write_braces(out_, at<Dims>(attrs, f));
    case FieldKind::STRING:
      if (f.text != "domain") return write_string(out_, at<std::string_view>(attrs, f));
      out_ += at<std::string_view>(attrs, f);
      return;
    case FieldKind::WINDOW:
      return write_window(out_, at<Window>(attrs, f));
    case FieldKind::SLICES:
      return write_slices(out_, at<SliceRanges>(attrs, f));
    case FieldKind::PADS:
      return write_padding(out_, at<Padding>(attrs, f));
    case FieldKind::DIM_LABELS:
      out_ += labels_text(at<DimLabels>(attrs, f));
      return;
    case FieldKind::PRECISIONS: {
      const auto& list = at<Dims>(attrs, f);
      out_ += '{';
      for (size_t i = 0; i < list.size(); ++i) {
        if (i) out_ += ',';
        out_ += kPrecisions[static_cast<size_t>(std::clamp<int64_t>(list[i], 0, 2))];
      }
      out_ += '}';
      return;
    }
    case FieldKind::GROUPS:
      return write_groups(out_, at<Groups>(attrs, f));
    case FieldKind::PAIRS:
      return write_pairs(out_, at<Dims>(attrs, f));
    case FieldKind::SHAPE:
      return write_shape(out_, *at<const Shape*>(attrs, f), options_.layouts);
    case FieldKind::SHAPES: {
      const auto& list = at<List<const Shape* const>>(attrs, f);
      out_ += '{';
      for (size_t i = 0; i < list.size(); ++i) {
        if (i) out_ += ", ";
        write_shape(out_, *list[i], options_.layouts);
      }
      out_ += '}';
      return;
    }
    case FieldKind::LITERAL:
      return write_literal(out_, *at<const Literal*>(attrs, f), large_constants(), true, options_.layouts);
    case FieldKind::ALIASING:
      return write_aliasing(out_, at<List<const AliasEntry>>(attrs, f));
    case FieldKind::LISTS:
      return write_lists(out_, at<List<const Dims>>(attrs, f));
  }
}

// ---- attributes of any instruction ----

namespace {

// True if text allows the name. Other formats of programs may have names that text does not allow; these are omitted.
bool is_attribute_name(std::string_view name) {
  const std::string text = std::string(name) + "=";
  Token token;
  Lexer(text).next(token);
  return token.kind == Tok::AttrName && token.text == name;
}

}  // namespace

void Printer::frontend(std::span<const FrontendAttribute> list) {
  bool any = false;
  for (const FrontendAttribute& attribute : list) {
    if (!is_attribute_name(attribute.name)) continue;
    out_ += any ? "," : ", frontend_attributes={";
    any = true;
    out_ += attribute.name;
    out_ += '=';
    if (attribute.is_json)
      out_ += attribute.value;
    else
      write_string(out_, attribute.value);
  }
  if (any) out_ += '}';
}

void Printer::metadata(const Metadata& m) {
  out_ += ", metadata={";
  bool first = true;
  const auto name = [&](std::string_view text) {
    if (!first) out_ += ' ';
    first = false;
    out_ += text;
    out_ += '=';
  };
  const auto string = [&](std::string_view text, std::string_view value) {
    if (value.empty()) return;
    name(text);
    write_string(out_, value);
  };
  const auto number = [&](std::string_view text, int64_t value) {
    if (value == 0) return;
    name(text);
    write(out_, value);
  };
  string("op_type", m.op_type);
  string("op_name", m.op_name);
  string("source_file", m.source_file);
  number("source_line", m.source_line);
  number("source_end_line", m.source_end_line);
  number("source_column", m.source_column);
  number("source_end_column", m.source_end_column);
  if (!m.profile_type.empty()) {
    name("profile_type");
    write_braces(out_, m.profile_type);
  }
  string("deduplicated_name", m.deduplicated_name);
  string("scheduling_name", m.scheduling_name);
  number("stack_frame_id", m.stack_frame_id);
  out_ += '}';
}

void Printer::accuracy(const ResultAccuracy& accuracy) {
  out_ += ", result_accuracy={";
  if (accuracy.is_mode) {
    out_ += "mode=";
    out_ += accuracy.mode;
  } else {
    out_ += "tolerance={atol=";
    write_real(out_, accuracy.atol, false);
    out_ += ",rtol=";
    write_real(out_, accuracy.rtol, false);
    out_ += ",ulps=";
    write(out_, accuracy.ulps);
    out_ += '}';
  }
  out_ += '}';
}

void Printer::extras(const Extras& e) {
  if (e.sharding) out_ += ", sharding=" + e.sharding->to_string();
  if (!e.parameter_replication.empty()) {
    out_ += ", parameter_replication={";
    for (size_t i = 0; i < e.parameter_replication.size(); ++i) {
      if (i) out_ += ',';
      out_ += e.parameter_replication[i] ? "true" : "false";
    }
    out_ += '}';
  }
  if (options_.style != PrintStyle::Fingerprint) frontend(e.frontend_attributes);
  if (options_.style == PrintStyle::Long) {
    if (!e.control_predecessors.empty()) {
      out_ += ", control-predecessors={";
      for (size_t i = 0; i < e.control_predecessors.size(); ++i) {
        if (i) out_ += ", ";
        instruction_name(e.control_predecessors[i]);
      }
      out_ += '}';
    }
    if (!e.statistics.empty()) {
      out_ += ", statistics=";
      out_ += e.statistics;
    }
  }
  if (e.result_accuracy) accuracy(*e.result_accuracy);
  if (options_.style != PrintStyle::Long) return;
  if (!e.origin.empty() && options_.metadata) {
    out_ += ", origin=";
    out_ += e.origin;
  }
  if (e.metadata && options_.metadata) metadata(*e.metadata);
  if (!e.backend_config.empty() || e.backend_config_is_json) {
    out_ += ", backend_config=";
    if (e.backend_config_is_json)
      out_ += e.backend_config;
    else
      write_string(out_, e.backend_config);
  }
}

}  // namespace collet::hlo::text
