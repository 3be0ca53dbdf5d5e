// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "hlo/ops/properties.h"
#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {
namespace {

constexpr std::pair<std::string_view, Common> kCommon[] = {
    {"metadata", Common::Metadata},
    {"sharding", Common::Sharding},
    {"backend_config", Common::BackendConfig},
    {"frontend_attributes", Common::FrontendAttributes},
    {"control-predecessors", Common::ControlPredecessors},
    {"parameter_replication", Common::ParameterReplication},
    {"statistics", Common::Statistics},
    {"origin", Common::Origin},
    {"result_accuracy", Common::ResultAccuracy},
};

bool takes_mode(Op op) {
  return op == Op::ALL_REDUCE || op == Op::ALL_REDUCE_START || op == Op::REDUCE_SCATTER;
}

struct RegionNames {
  std::vector<std::string_view> names;
  uint32_t required = 0;  // bit i: name i is required
};

const RegionNames& region_names(Regions regions) {
  static const RegionNames kTable[] = {
      {{}, 0},                                         // NONE
      {{"to_apply"}, 1},                               // TO_APPLY
      {{"condition", "body"}, 3},                      // CONDITION_BODY
      {{"select", "scatter"}, 3},                      // SELECT_SCATTER
      {{"true_computation", "false_computation"}, 3},  // BRANCHES, with a pred
      {{"calls"}, 1},                                  // CALLS
      {{"to_apply", "called_computations"}, 0},        // CUSTOM
      {{"branch_computations"}, 1},                    // BRANCHES, with an index
  };
  return kTable[static_cast<size_t>(regions)];
}

template <typename T>
T& at(void* attrs, const FieldInfo& f) {
  return *reinterpret_cast<T*>(static_cast<char*>(attrs) + f.offset);
}

}  // namespace

bool Parser::attributes(Draft& draft, bool allowed) {
  const char* start = tok_.begin;
  if (draft.record == Record::Convolution) {
    auto* attrs = static_cast<ConvolutionAttrs*>(draft.attrs);
    attrs->feature_groups = attrs->batch_groups = 1;
  }
  if (allowed)
    while (eat(Tok::Comma))
      if (!attribute(draft)) return false;
  return missing_attributes(draft, start);
}

namespace {

// The op whose attributes the line has. For an asynchronous op in its short form ("add-start") it is the wrapped op.
Op described_op(const Draft& draft) {
  return draft.op == Op::ASYNC_START && draft.wrapped != Op::INVALID ? draft.wrapped : draft.op;
}

}  // namespace

int Parser::region_index(const Draft& draft, std::string_view name, bool& list) const {
  const Op op = described_op(draft);
  Regions regions = op_info(op).regions;
  if (regions == Regions::NONE) return -1;
  // An update or done in the short form.
  if (op != Op::ASYNC_START && draft.wrapped != Op::INVALID && op == draft.op) return -1;
  size_t row = static_cast<size_t>(regions);
  if (regions == Regions::BRANCHES && module_[draft.operands[0]].shape.type() != Type::PRED) row = 7;
  const auto& names = region_names(static_cast<Regions>(row)).names;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) {
      list = row == 7 || (regions == Regions::CUSTOM && i == 1);
      return static_cast<int>(i);
    }
  return -1;
}

bool Parser::attribute(Draft& draft) {
  if (!is(Tok::AttrName)) return expected_attribute("an attribute's name");
  const std::string_view text = tok_.text;
  const char* begin = tok_.begin;
  const auto twice = [&] { return complain(begin, "attribute '" + std::string(text) + "' is given twice"); };
  const auto fields = record_fields(draft.record);
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].text != text || text.empty()) continue;
    if (draft.seen >> i & 1) return twice();
    draft.seen |= uint64_t{1} << i;
    next();
    if (fields[i].text == "channel_id" && is(Tok::Int) && tok_.integer == 0)
      draft.has_extras = draft.extras.zero_channel = true;
    return field(fields[i], draft.attrs);
  }
  for (const auto& [name, which] : kCommon) {
    if (name != text) continue;
    if (which == Common::ResultAccuracy && !op_properties(described_op(draft)).result_accuracy) break;
    const uint32_t bit = 1u << static_cast<int>(which);
    if (draft.seen_common & bit) return twice();
    draft.seen_common |= bit;
    next();
    return common_attribute(draft, which);
  }
  bool list = false;
  if (const int index = region_index(draft, text, list); index >= 0) {
    if (draft.seen_regions >> index & 1) return twice();
    draft.seen_regions |= 1u << index;
    next();
    return region_attribute(draft, index, list);
  }
  if (draft.async_record != Record::None && text == "async_execution_thread") {
    if (draft.seen_async) return twice();
    draft.seen_async = 1;
    next();
    return string(static_cast<AsyncAttrs*>(draft.async_attrs)->thread);
  }
  if (text == "mode" && takes_mode(described_op(draft))) {
    // Some versions of XLA wrote this attribute. It follows from channel_id and use_global_device_ids, so it is skipped.
    if (draft.seen_mode) return twice();
    draft.seen_mode = true;
    next();
    if (!is(Tok::Ident)) return expected("a mode");
    static const std::vector<std::string_view> kModes = {"cross_replica", "cross_partition",
                                                         "cross_replica_and_partition", "flattened_id"};
    if (std::find(kModes.begin(), kModes.end(), tok_.text) == kModes.end()) return expected("a mode of collectives");
    next();
    return true;
  }
  return unknown_attribute(draft, text, begin);
}

bool Parser::unknown_attribute(const Draft& draft, std::string_view text, const char* begin) {
  const Op op = described_op(draft);
  std::vector<std::string_view> known;
  for (const FieldInfo& f : record_fields(draft.record))
    if (!f.text.empty()) known.push_back(f.text);
  bool list = false;
  for (size_t row = 1; row < 8; ++row)
    for (std::string_view name : region_names(static_cast<Regions>(row)).names)
      if (region_index(draft, name, list) >= 0 && std::find(known.begin(), known.end(), name) == known.end())
        known.push_back(name);
  if (draft.async_record != Record::None) known.push_back("async_execution_thread");
  for (const auto& [name, which] : kCommon)
    if (which != Common::ResultAccuracy || op_properties(op).result_accuracy) known.push_back(name);
  std::string message = std::string(op_info(op).text) + " has no attribute '" + std::string(text) + "'";
  const std::string_view near = nearest_spelling(text, known);
  if (!near.empty()) {
    message += "; did you mean '" + std::string(near) + "'?";
  } else {
    message += "; it has ";
    for (size_t i = 0; i < known.size(); ++i) message += (i ? ", " : "") + std::string(known[i]);
  }
  return complain(begin, std::move(message));
}

bool Parser::missing_attributes(const Draft& draft, const char* start) {
  const Op op = described_op(draft);
  const auto missing = [&](std::string_view name) {
    return complain(start, "attribute '" + std::string(name) + "' of " + std::string(op_info(op).text) + " is missing");
  };
  const auto fields = record_fields(draft.record);
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldInfo& f = fields[i];
    // XLA's protos do not tell the padding of a scalar, which has none, from a missing one.
    const bool scalar_pad = f.kind == FieldKind::PADS && draft.shape && draft.shape->is_scalar();
    const bool needed = f.required && f.kind != FieldKind::WINDOW && !f.text.empty() && !scalar_pad;
    if (needed && !(draft.seen >> i & 1)) return missing(f.text);
  }
  Regions regions = op_info(op).regions;
  if (regions == Regions::NONE || op == Op::ASYNC_UPDATE || op == Op::ASYNC_DONE) return true;
  if (op == Op::REDUCE_SCATTER || regions != Regions::BRANCHES) {
    const RegionNames& names = region_names(regions);
    for (size_t i = 0; i < names.names.size(); ++i)
      if (names.required >> i & 1 && !(draft.seen_regions >> i & 1)) return missing(names.names[i]);
    return true;
  }
  const size_t row = module_[draft.operands[0]].shape.type() == Type::PRED ? static_cast<size_t>(regions) : 7;
  const RegionNames& names = region_names(static_cast<Regions>(row));
  for (size_t i = 0; i < names.names.size(); ++i)
    if (!(draft.seen_regions >> i & 1)) return missing(names.names[i]);
  return !draft.called.empty() || complain(start, "conditional has no branches");
}

bool Parser::common_attribute(Draft& draft, Common which) {
  draft.has_extras = true;
  Extras& extras = draft.extras;
  switch (which) {
    case Common::Sharding:
      return sharding(extras.sharding);
    case Common::FrontendAttributes: {
      std::vector<FrontendAttribute> list;
      if (!frontend_attributes(list)) return false;
      extras.frontend_attributes = module_.arena().list(list);
      return true;
    }
    case Common::ParameterReplication:
      return parameter_replication(extras.parameter_replication);
    case Common::ControlPredecessors:
      return control_predecessors(extras.control_predecessors);
    case Common::Statistics:
      return statistics(extras.statistics);
    case Common::Origin:
      return origin(extras.origin);
    case Common::Metadata:
      return metadata(extras.metadata);
    case Common::BackendConfig:
      return backend_config(extras);
    case Common::ResultAccuracy:
      return result_accuracy(extras.result_accuracy);
    case Common::Count:
      break;
  }
  return false;
}

// ---- called computations ----

bool Parser::computation_reference(CompId& out) {
  if (is(Tok::LeftBrace)) {
    Scope& inside = push_scope();
    const bool ok = instruction_list(inside, "_");
    pop_scope();
    out = inside.computation;
    if (ok) unnamed_.push_back(out);
    return ok;
  }
  const char* begin = tok_.begin;
  std::string_view text;
  if (!name(text)) return false;
  const uint32_t found = computation_names_.find(text);
  if (found == kRefused) return false;
  if (found == NameTable::kNone) return undefined("computation", text, computation_names_, begin);
  out = static_cast<CompId>(found);
  return true;
}

bool Parser::region_attribute(Draft& draft, int index, bool list) {
  CompId id = CompId::None;
  if (op_info(described_op(draft)).regions == Regions::CUSTOM && draft.seen_regions == 3)
    return complain("a custom-call has either to_apply or called_computations");
  if (!list) {
    if (!computation_reference(id)) return false;
    // Computations are stored in the order of region_names (condition before body, and so on), in whatever order the text
    // has them.
    if (static_cast<size_t>(index) > draft.called.size()) draft.called.resize(static_cast<size_t>(index), CompId::None);
    if (static_cast<size_t>(index) < draft.called.size())
      draft.called[static_cast<size_t>(index)] = id;
    else
      draft.called.push_back(id);
    return true;
  }
  if (!expect(Tok::LeftBrace, " before the computations")) return false;
  if (!is(Tok::RightBrace)) do {
      if (!computation_reference(id)) return false;
      draft.called.push_back(id);
    } while (eat(Tok::Comma));
  return expect(Tok::RightBrace, " after the computations");
}

// ---- fields of records ----

bool Parser::field(const FieldInfo& f, void* attrs) {
  switch (f.kind) {
    case FieldKind::I64: {
      int64_t value;
      const char* begin = tok_.begin;
      if (!integer(value)) return false;
      // These two are optional and 0 is a valid value, so value + 1 is stored and 0 means absent.
      if (f.text == "inferred_dimension" || f.text == "cross_program_prefetch_index") {
        if (value < -1 || value > INT32_MAX) return complain(begin, "the number is out of range");
        ++value;
      }
      at<int64_t>(attrs, f) = value;
      return true;
    }
    case FieldKind::U32: {
      int64_t value;
      const char* begin = tok_.begin;
      if (!integer(value)) return false;
      if (value < 0 || value > UINT32_MAX) return complain(begin, "the number is out of range");
      at<uint32_t>(attrs, f) = static_cast<uint32_t>(value);
      return true;
    }
    case FieldKind::BOOL:
      return boolean(at<bool>(attrs, f));
    case FieldKind::NOT_BOOL: {
      bool value;
      if (!boolean(value)) return false;
      at<bool>(attrs, f) = !value;
      return true;
    }
    case FieldKind::F32: {
      double value;
      const char* begin = tok_.begin;
      if (!number(value)) return false;
      if (std::isinf(value) || (std::isfinite(value) && std::isinf(static_cast<float>(value))))
        return complain(begin, "the number is out of range for f32");
      at<float>(attrs, f) = static_cast<float>(value);
      return true;
    }
    case FieldKind::ENUM:
      return enum_value(f, at<uint32_t>(attrs, f));
    case FieldKind::DIM: {
      const char* begin = tok_.begin;
      if (!int_list(numbers_, Tok::LeftBrace, Tok::RightBrace, Tok::Comma)) return false;
      if (numbers_.size() != 1) return complain(begin, "attribute '" + std::string(f.text) + "' holds one dimension");
      at<int64_t>(attrs, f) = numbers_[0];
      return true;
    }
    case FieldKind::DIMS:
      return dims(at<Dims>(attrs, f));
    case FieldKind::STRING:
      return f.text == "domain" ? domain(at<std::string_view>(attrs, f)) : string(at<std::string_view>(attrs, f));
    case FieldKind::WINDOW:
      return window(at<Window>(attrs, f));
    case FieldKind::SLICES:
      return slices(at<SliceRanges>(attrs, f));
    case FieldKind::PADS:
      return pads(at<Padding>(attrs, f));
    case FieldKind::DIM_LABELS:
      return dim_labels(at<DimLabels>(attrs, f));
    case FieldKind::PRECISIONS:
      return precisions(at<Dims>(attrs, f));
    case FieldKind::GROUPS:
      return groups(at<Groups>(attrs, f));
    case FieldKind::PAIRS:
      return pairs(at<Dims>(attrs, f));
    case FieldKind::SHAPE: {
      const Shape* s = nullptr;
      if (!shape(s)) return false;
      at<const Shape*>(attrs, f) = module_.keep(*s);
      return true;
    }
    case FieldKind::SHAPES:
      return shapes(at<List<const Shape* const>>(attrs, f));
    case FieldKind::LITERAL: {
      Literal value;
      if (!shaped_literal(value)) return false;
      at<const Literal*>(attrs, f) = module_.keep(std::move(value));
      return true;
    }
    case FieldKind::ALIASING:
      return aliasing(at<List<const AliasEntry>>(attrs, f));
    case FieldKind::LISTS:
      return lists(at<List<const Dims>>(attrs, f));
  }
  return false;
}

bool Parser::enum_value(const FieldInfo& f, uint32_t& out) {
  if (!is(Tok::Ident)) return expected("a value of '" + std::string(f.text) + "'");
  for (const EnumValue& v : f.values)
    if (v.text == tok_.text && !v.text.empty()) {
      out = v.value;
      next();
      return true;
    }
  // Names that older files use, and the names by which XLA writes an unset value.
  std::string lower(tok_.text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const EnumValue* old = nullptr;
  for (const EnumValue& v : f.values)
    if (v.text == lower && v.text.starts_with("dot_")) old = &v;
  if (tok_.text == "PADDING_INVALID" || tok_.text == "TRANSPOSE_INVALID") old = &f.values[0];
  if (old && (f.text == "algorithm" || f.text == "padding_type" || f.text == "transpose_a")) {
    out = old->value;
    next();
    return true;
  }
  std::vector<std::string_view> known;
  for (const EnumValue& v : f.values)
    if (!v.text.empty()) known.push_back(v.text);
  std::string message = "attribute '" + std::string(f.text) + "' has no value '" + std::string(tok_.text) + "'";
  const std::string_view near = nearest_spelling(tok_.text, known);
  if (!near.empty()) {
    message += "; did you mean '" + std::string(near) + "'?";
  } else {
    message += "; it is one of ";
    for (size_t i = 0; i < known.size(); ++i) message += (i ? ", " : "") + std::string(known[i]);
  }
  return complain(std::move(message));
}

// ---- fields of several parts ----

bool Parser::shapes(List<const Shape* const>& out) {
  if (!expect(Tok::LeftBrace, " before the shapes")) return false;
  std::vector<const Shape*> list;
  if (!is(Tok::RightBrace)) do {
      const Shape* s = nullptr;
      if (!shape(s)) return false;
      list.push_back(module_.keep(*s));
    } while (eat(Tok::Comma));
  out = module_.arena().list<const Shape* const>(std::span<const Shape* const>(list));
  return expect(Tok::RightBrace, " after the shapes");
}

bool Parser::shape_index(Dims& out) {
  if (!expect(Tok::LeftBrace, " before an index")) return false;
  numbers_.clear();
  int64_t value;
  while (!is(Tok::RightBrace)) {
    if (!integer(value)) return false;
    numbers_.push_back(value);
    if (!eat(Tok::Comma)) break;
  }
  out = module_.dims(numbers_);
  return expect(Tok::RightBrace, " after an index");
}

bool Parser::aliasing(List<const AliasEntry>& out) {
  if (!expect(Tok::LeftBrace, " before the aliasing")) return false;
  std::vector<AliasEntry> list;
  while (!is(Tok::RightBrace)) {
    AliasEntry entry;
    if (!shape_index(entry.output_index) || !expect(Tok::Colon, " in {output}: (operand, {index})") ||
        !alias_target(entry.operand, entry.operand_index) ||
        !expect(Tok::RightParen, " in {output}: (operand, {index})"))
      return false;
    list.push_back(entry);
    if (!eat(Tok::Comma)) break;
  }
  out = module_.arena().list(list);
  return expect(Tok::RightBrace, " after the aliasing");
}

// Reads domain={kind="sharding", entry={...}, exit={...}}: checked, and kept as text.
bool Parser::domain(std::string_view& out) {
  if (!is(Tok::LeftBrace)) return expected("'{'");
  const char* open = tok_.begin;
  next();
  bool kind = false, entry = false, exit = false;
  while (!is(Tok::RightBrace)) {
    eat(Tok::Comma);
    if (!is(Tok::AttrName)) return expected_attribute("kind=, entry= or exit=");
    const std::string_view text = tok_.text;
    bool* seen = text == "kind" ? &kind : text == "entry" ? &entry : text == "exit" ? &exit : nullptr;
    if (!seen) return expected("kind=, entry= or exit=");
    if (*seen) return complain("'" + std::string(text) + "' is given twice");
    *seen = true;
    next();
    if (text == "kind") {
      if (!is(Tok::String) || tok_.text != "sharding") return expected("\"sharding\"");
      next();
    } else {
      const Sharding* ignored = nullptr;
      if (!sharding(ignored)) return false;
    }
  }
  if (!kind || !entry || !exit) return complain(open, "a domain has kind, entry and exit");
  out = module_.arena().string({open, static_cast<size_t>(tok_.end - open)});
  next();
  return true;
}

}  // namespace collet::hlo::text
