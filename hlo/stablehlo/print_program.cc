// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "hlo/stablehlo/attribute_rules.h"
#include "hlo/stablehlo/op_schemas.h"
#include "hlo/stablehlo/print_attributes.h"
#include "hlo/stablehlo/write.h"

// Prints programs as text: frequent and simple ops in their short form, all others in MLIR's generic form.

namespace collet::hlo::mlir {
namespace {

// How the types of an op in short form are written.
enum class Signature : uint8_t {
  Same,      ///< one type for all; or (operands) -> results if they differ
  Function,  ///< (operands) -> results
  Result,    ///< the type of the result
};

/// The short form of an op: `name operands, keyword = attribute, ... : types`.
struct ShortForm {
  std::string_view op;
  Signature signature;
  std::string_view keywords;  ///< pairs of keyword and attribute: "dims=broadcast_dimensions,..."
};

constexpr ShortForm kShort[] = {
    {"stablehlo.abs", Signature::Same, ""},
    {"stablehlo.add", Signature::Same, ""},
    {"stablehlo.and", Signature::Same, ""},
    {"stablehlo.atan2", Signature::Same, ""},
    {"stablehlo.bitcast_convert", Signature::Function, ""},
    {"stablehlo.broadcast_in_dim", Signature::Function, "dims=broadcast_dimensions"},
    {"stablehlo.ceil", Signature::Same, ""},
    {"stablehlo.clamp", Signature::Same, ""},
    {"stablehlo.complex", Signature::Same, ""},
    {"stablehlo.concatenate", Signature::Function, "dim=dimension"},
    {"stablehlo.convert", Signature::Function, ""},
    {"stablehlo.count_leading_zeros", Signature::Same, ""},
    {"stablehlo.divide", Signature::Same, ""},
    {"stablehlo.dynamic_slice", Signature::Function, "sizes=slice_sizes"},
    {"stablehlo.dynamic_update_slice", Signature::Function, ""},
    {"stablehlo.floor", Signature::Same, ""},
    {"stablehlo.imag", Signature::Function, ""},
    {"stablehlo.iota", Signature::Result, "dim=iota_dimension"},
    {"stablehlo.is_finite", Signature::Function, ""},
    {"stablehlo.maximum", Signature::Same, ""},
    {"stablehlo.minimum", Signature::Same, ""},
    {"stablehlo.multiply", Signature::Same, ""},
    {"stablehlo.negate", Signature::Same, ""},
    {"stablehlo.not", Signature::Same, ""},
    {"stablehlo.or", Signature::Same, ""},
    {"stablehlo.pad", Signature::Function, "low=edge_padding_low,high=edge_padding_high,interior=interior_padding"},
    {"stablehlo.partition_id", Signature::Result, ""},
    {"stablehlo.popcnt", Signature::Same, ""},
    {"stablehlo.power", Signature::Same, ""},
    {"stablehlo.real", Signature::Function, ""},
    {"stablehlo.remainder", Signature::Same, ""},
    {"stablehlo.replica_id", Signature::Result, ""},
    {"stablehlo.reshape", Signature::Function, ""},
    {"stablehlo.reverse", Signature::Same, "dims=dimensions"},
    {"stablehlo.round_nearest_afz", Signature::Same, ""},
    {"stablehlo.round_nearest_even", Signature::Same, ""},
    {"stablehlo.shift_left", Signature::Same, ""},
    {"stablehlo.shift_right_arithmetic", Signature::Same, ""},
    {"stablehlo.shift_right_logical", Signature::Same, ""},
    {"stablehlo.sign", Signature::Same, ""},
    {"stablehlo.subtract", Signature::Same, ""},
    {"stablehlo.transpose", Signature::Function, "dims=permutation"},
    {"stablehlo.xor", Signature::Same, ""},
};

const ShortForm* find_short(std::string_view op) {
  static const auto* const map = [] {
    auto* out = new std::unordered_map<std::string_view, const ShortForm*>;
    for (const ShortForm& form : kShort) out->emplace(form.op, &form);
    return out;
  }();
  const auto it = map->find(op);
  return it == map->end() ? nullptr : it->second;
}

template <typename Visit>
void each_field(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    visit(list.substr(0, comma));
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
}

bool is_none(AttrRef value) {
  return value->kind == Attr::Kind::Type && (!value->type || value->type->kind == Type::Kind::None);
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string run() {
    const Op& module = *program_.module;
    out_ += "module";
    if (AttrRef name = module.attr("sym_name"); name && !name->text.empty()) out_ += " " + symbol_text(name->text);
    const std::string attributes = discardable(module);
    if (!attributes.empty()) out_ += " attributes " + attributes;
    out_ += " {\n";
    if (const Block* body = module.body())
      for (const Op* op : body->ops) print_op(*op, 1, module);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  void indent(int depth) { out_.append(static_cast<size_t>(2 * depth), ' '); }

  std::string value(const Value* v) const {
    const auto it = names_.find(v);
    return it == names_.end() ? "%undefined" : it->second;
  }

  std::string values(const std::vector<Value*>& list) const {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + value(list[i]);
    return out;
  }

  static std::string types(const std::vector<Value*>& list) {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + to_string(list[i]->type);
    return out;
  }

  static std::string function_type(const Op& op) {
    const std::string results = types(op.results);
    const bool bare =
        op.results.size() == 1 && op.results[0]->type && op.results[0]->type->kind != Type::Kind::Function;
    return "(" + types(op.operands) + ") -> " + (bare ? results : "(" + results + ")");
  }

  /// Returns the op's own attributes in the braces of properties; empty if there are none.
  std::string properties(const Op& op) {
    std::vector<const AttrRecord*> done;
    std::string out;
    const auto add = [&](std::string_view name, const std::string& text) {
      out += (out.empty() ? "" : ", ") + key_text(name);
      if (!text.empty()) out += " = " + text;
    };
    for (const NamedAttr& a : op.attrs) {
      if (!a.value || !is_own_attribute(op.name, a.name)) continue;
      if (const AttrRecord* record = find_attr_record(op.name, a.name)) {
        if (std::find(done.begin(), done.end(), record) != done.end()) continue;
        done.push_back(record);
        if (const std::string text = record_text(op, *record); !text.empty()) add(record->name, text);
        continue;
      }
      const AttrRule* rule = find_attr_rule(a.name);
      if (rule && rule->form == AttrForm::Flag) {
        if (a.value->kind == Attr::Kind::Unit || a.value->integer) add(a.name, "");
        continue;
      }
      if (rule && rule->form == AttrForm::Accuracy && is_default_attr(*rule, a.value)) continue;
      // Empty lists are omitted: text has layouts for all operands or for none.
      if (rule && rule->form == AttrForm::Any && a.value->kind == Attr::Kind::Array && a.value->items.empty()) continue;
      if (rule && a.name == "compare_type" && a.value->text == "NOTYPE") continue;
      add(a.name, own_text(op, rule, a.value));
    }
    return out;
  }

  std::string record_text(const Op& op, const AttrRecord& record) {
    if (record.type == "#stablehlo.conv") return convolution_text(op);
    if (record.name == "channel_handle") {
      AttrRef id = op.attr("channel_id"), type = op.attr("channel_type");
      const bool needed = op.name == "stablehlo.send" || op.name == "stablehlo.recv";
      if ((!id || id->integer <= 0) && !needed) return {};
      return "#stablehlo.channel_handle<handle = " + std::to_string(id ? id->integer : 0) +
             ", type = " + std::to_string(type ? type->integer : 0) + ">";
    }
    std::string out;
    bool any = false;
    each_field(record.fields, [&](std::string_view field) {
      AttrRef a = op.attr(field);
      if (!a || is_none(a)) return;
      any = true;
      // Empty lists and zero numbers are omitted, except for the last field, which is always written.
      if (a->kind == Attr::Kind::Ints && a->ints.empty()) return;
      out += out.empty() ? "" : ", ";
      out += std::string(field) + " = ";
      if (a->kind == Attr::Kind::Ints)
        out += ints_text(a->ints);
      else if (a->kind == Attr::Kind::Int)
        out += std::to_string(a->integer);
      else
        out += attr_to_string(a);
    });
    return any ? std::string(record.type) + "<" + out + ">" : std::string();
  }

  static std::string convolution_text(const Op& op) {
    const auto part = [&](std::string_view prefix, std::string_view first, char first_letter, std::string_view second,
                          char second_letter) {
      std::vector<std::pair<int64_t, std::string>> at;
      const auto number = [&](std::string_view name) {
        AttrRef a = op.attr(std::string(prefix) + std::string(name));
        return a ? a->integer : -1;
      };
      at.emplace_back(number(first), std::string(1, first_letter));
      at.emplace_back(number(second), std::string(1, second_letter));
      if (AttrRef spatial = op.attr(std::string(prefix) + "spatial_dimensions"))
        for (size_t i = 0; i < spatial->ints.size(); ++i) at.emplace_back(spatial->ints[i], std::to_string(i));
      std::string out = "[";
      for (size_t d = 0; d < at.size(); ++d) {
        std::string label = "?";
        for (const auto& [position, text] : at)
          if (position == static_cast<int64_t>(d)) label = text;
        out += (d ? ", " : "") + label;
      }
      return out + "]";
    };
    return "#stablehlo.conv<" + part("input_", "batch_dimension", 'b', "feature_dimension", 'f') + "x" +
           part("kernel_", "input_feature_dimension", 'i', "output_feature_dimension", 'o') + "->" +
           part("output_", "batch_dimension", 'b', "feature_dimension", 'f') + ">";
  }

  static std::string table_text(AttrRef a) {
    if (a->dims.size() > 1 || a->kind != Attr::Kind::Ints) return attr_to_string(a);
    // A list of pairs whose shape was not stored.
    Attr table = *a;
    const int64_t shape[] = {static_cast<int64_t>(a->ints.size() / 2), 2};
    Arena arena;
    table.dims = arena.list<const int64_t>(shape);
    return attr_to_string(&table);
  }

  static std::string own_text(const Op& op, const AttrRule* rule, AttrRef a) {
    if (!rule) return attr_to_string(a);
    switch (rule->form) {
      case AttrForm::I64:
        if (a->kind == Attr::Kind::Int) return std::to_string(a->integer) + " : i64";
        break;
      case AttrForm::I32:
        if (a->kind == Attr::Kind::Int) return std::to_string(a->integer) + " : i32";
        break;
      case AttrForm::Bool:
        if (a->kind == Attr::Kind::Unit) return "true";
        if (a->kind == Attr::Kind::Int || a->kind == Attr::Kind::Bool) return a->integer ? "true" : "false";
        break;
      case AttrForm::Bools:
      case AttrForm::Ints: {
        Attr flat = *a;
        flat.dims = {};
        if (rule->form == AttrForm::Bools && a->kind == Attr::Kind::Ints) flat.kind = Attr::Kind::Bools;
        return attr_to_string(&flat);
      }
      case AttrForm::Table:
        return table_text(a);
      case AttrForm::Enum:
        return "#stablehlo<" + std::string(rule->enum_text) + " " + std::string(a->text) + ">";
      case AttrForm::Precisions: {
        std::string out = "[";
        for (size_t i = 0; i < a->items.size(); ++i)
          out += (i ? ", #" : "#") + std::string(op.name.substr(0, op.name.find('.'))) + "<precision " +
                 std::string(a->items[i] ? a->items[i]->text : "DEFAULT") + ">";
        return out + "]";
      }
      case AttrForm::ApiVersion: {
        const int64_t number =
            a->kind == Attr::Kind::Enum ? vhlo_enum_value(VhloEnum::ApiVersion, a->text) : a->integer;
        return std::to_string(number) + " : i32";
      }
      case AttrForm::Text:
        return string_literal(a->text);
      case AttrForm::Symbol:
        return symbol_text(a->text);
      case AttrForm::Symbols: {
        std::string out = "[";
        for (size_t i = 0; i < a->items.size(); ++i)
          out += (i ? ", " : "") + symbol_text(a->items[i] ? a->items[i]->text : "");
        return out + "]";
      }
      default:
        break;
    }
    return attr_to_string(a);
  }

  /// Returns the attributes that any op may have, with their braces; empty if there are none.
  std::string discardable(const Op& op) {
    std::string out;
    for (const NamedAttr& a : op.attrs) {
      if (!a.value || is_own_attribute(op.name, a.name)) continue;
      out += (out.empty() ? "{" : ", ") + key_text(a.name);
      if (a.value->kind != Attr::Kind::Unit) out += " = " + attr_to_string(a.value);
    }
    return out.empty() ? out : out + "}";
  }

  void name_arguments(const Block& block) {
    for (const Value* v : block.arguments) names_[v] = "%arg" + std::to_string(next_argument_++);
  }

  void print_function(const Op& op, int depth) {
    names_.clear();
    next_argument_ = next_value_ = 0;
    indent(depth);
    out_ += "func.func ";
    if (AttrRef v = op.attr("sym_visibility"); v && !v->text.empty()) out_ += std::string(v->text) + " ";
    AttrRef name = op.attr("sym_name");
    out_ += symbol_text(name ? name->text : "") + "(";
    const Block* body = op.body();
    if (body) name_arguments(*body);
    AttrRef function = op.attr("function_type");
    TypeRef type = function ? function->type : nullptr;
    const auto entry = [&](AttrRef list, size_t i) {
      if (!list || list->kind != Attr::Kind::Array || i >= list->items.size() || !list->items[i] ||
          list->items[i]->fields.empty())
        return std::string();
      return " " + attr_to_string(list->items[i]);
    };
    const size_t inputs = type ? type->inputs.size() : 0, outputs = type ? type->results.size() : 0;
    for (size_t i = 0; i < inputs; ++i) {
      if (i) out_ += ", ";
      if (body && i < body->arguments.size()) out_ += value(body->arguments[i]) + ": ";
      out_ += to_string(type->inputs[i]) + entry(op.attr("arg_attrs"), i);
    }
    out_ += ")";
    if (outputs) {
      out_ += " -> (";
      for (size_t i = 0; i < outputs; ++i)
        out_ += (i ? ", " : "") + to_string(type->results[i]) + entry(op.attr("res_attrs"), i);
      out_ += ")";
    }
    if (const std::string attributes = discardable(op); !attributes.empty()) out_ += " attributes " + attributes;
    if (!body) {
      out_ += "\n";
      return;
    }
    out_ += " {\n";
    for (const Op* inner : body->ops) print_op(*inner, depth + 1, op);
    indent(depth);
    out_ += "}\n";
  }

  void print_results(const Op& op, int depth) {
    indent(depth);
    if (op.results.empty()) return;
    const std::string name = "%" + std::to_string(next_value_++);
    out_ += name;
    if (op.results.size() > 1) out_ += ":" + std::to_string(op.results.size());
    out_ += " = ";
    for (size_t i = 0; i < op.results.size(); ++i)
      names_[op.results[i]] = op.results.size() > 1 ? name + "#" + std::to_string(i) : name;
  }

  bool print_short(const Op& op) {
    const std::string more = discardable(op);
    const std::string tail = more.empty() ? "" : " " + more;
    if (op.name == "stablehlo.constant") {
      AttrRef v = op.attr("value");
      if (!v || v->kind != Attr::Kind::Dense || op.results.size() != 1 ||
          to_string(v->type) != to_string(op.results[0]->type))
        return false;
      out_ += "stablehlo.constant " + (more.empty() ? "" : more + " ") + attr_to_string(v);
      return true;
    }
    if (op.name == "func.call") {
      AttrRef callee = op.attr("callee");
      if (!callee) return false;
      out_ +=
          "func.call " + symbol_text(callee->text) + "(" + values(op.operands) + ")" + tail + " : " + function_type(op);
      return true;
    }
    const ShortForm* form = find_short(op.name);
    if (!form || op.results.size() != 1 || !op.regions.empty()) return false;
    std::string text = std::string(op.name) + (op.operands.empty() ? "" : " ") + values(op.operands);
    bool complete = true, first = op.operands.empty();
    size_t known = 0;
    each_field(form->keywords, [&](std::string_view pair) {
      const size_t equal = pair.find('=');
      AttrRef a = op.attr(pair.substr(equal + 1));
      if (!a || (a->kind != Attr::Kind::Ints && a->kind != Attr::Kind::Int)) {
        complete = false;
        return;
      }
      ++known;
      text += (first ? " " : ", ") + std::string(pair.substr(0, equal)) + " = " +
              (a->kind == Attr::Kind::Ints ? ints_text(a->ints) : std::to_string(a->integer));
      first = false;
    });
    size_t own = 0;
    for (const NamedAttr& a : op.attrs) own += a.value && is_own_attribute(op.name, a.name);
    if (!complete || own != known) return false;
    const std::string result = to_string(op.results[0]->type);
    bool same = form->signature == Signature::Same;
    for (const Value* v : op.operands) same = same && to_string(v->type) == result;
    out_ += text + tail + " : " + (form->signature == Signature::Result || same ? result : function_type(op));
    return true;
  }

  void print_op(const Op& op, int depth, const Op& parent) {
    if (op.name == "func.func") return print_function(op, depth);
    print_results(op, depth);
    if (!print_short(op)) {
      std::string_view name = op.name;
      if (name == "stablehlo.return" && parent.name == "func.func") name = "func.return";
      if (name == "stablehlo.return" && parent.name.starts_with("sdy.")) name = "sdy.return";
      out_ += string_literal(name) + "(" + values(op.operands) + ")";
      if (const std::string own = properties(op); !own.empty()) out_ += " <{" + own + "}>";
      print_regions(op, depth);
      if (const std::string more = discardable(op); !more.empty()) out_ += " " + more;
      out_ += " : " + function_type(op);
    }
    out_ += "\n";
  }

  void print_regions(const Op& op, int depth) {
    if (op.regions.empty()) return;
    out_ += " (";
    for (size_t i = 0; i < op.regions.size(); ++i) {
      out_ += i ? ", {\n" : "{\n";
      for (const Block* block : op.regions[i]->blocks) {
        name_arguments(*block);
        if (!block->arguments.empty()) {
          indent(depth);
          out_ += "^bb0(";
          for (size_t k = 0; k < block->arguments.size(); ++k)
            out_ += (k ? ", " : "") + value(block->arguments[k]) + ": " + to_string(block->arguments[k]->type);
          out_ += "):\n";
        }
        for (const Op* inner : block->ops) print_op(*inner, depth + 1, op);
      }
      indent(depth);
      out_ += "}";
    }
    out_ += ")";
  }

  const Program& program_;
  std::string out_;
  std::unordered_map<const Value*, std::string> names_;
  int next_argument_ = 0, next_value_ = 0;
};

}  // namespace

std::string print_program(const Program& program) {
  return program.module ? Printer(program).run() : std::string();
}

}  // namespace collet::hlo::mlir
