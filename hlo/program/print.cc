// SPDX-License-Identifier: Apache-2.0
#include "hlo/program/print.h"

#include <cstdio>

#include "hlo/program/attributes.h"
#include "hlo/program/check.h"
#include "hlo/program/records.h"

namespace collet::hlo {
namespace {

const char* const kCombines[] = {"other", "add", "multiply", "minimum", "maximum", "and",
                                 "or",    "xor", "first",    "second",  "less",    "greater"};
constexpr size_t kShownBytes = 64;  // most bytes of an inline constant that are printed

class Printer {
 public:
  explicit Printer(const collet_program* program) : p_(program) {}

  std::string print() {
    out_ = "program \"" + text(p_->name) + "\": opset " + std::to_string(p_->opset) + ", " +
           std::to_string(p_->ops.count) + " ops, " + std::to_string(p_->total_bytes) + " bytes";
    if (p_->replica_count * p_->partition_count > 1)
      out_ += ", " + std::to_string(p_->replica_count) + " replicas x " + std::to_string(p_->partition_count) +
              " partitions";
    if (p_->arena_bytes) out_ += ", arena " + std::to_string(p_->arena_bytes) + " bytes";
    out_ += '\n';
    for (uint32_t i = 0; i < p_->aliases.count; ++i) {
      const collet_alias& a = *collet_alias_at(p_, i);
      out_ += "alias: result " + std::to_string(a.result) + (a.kind == COLLET_ALIAS_MUST ? " must" : " may") +
              " take over argument " + std::to_string(a.argument) + '\n';
    }
    region(0, 0);
    return std::move(out_);
  }

 private:
  std::string text(collet_range r) const { return r.count ? std::string(collet_string(p_, r), r.count) : ""; }

  std::string type(uint32_t index) const {
    const collet_type& t = *collet_type_at(p_, index);
    std::string out = collet_type_name(t.element);
    if (t.element == COLLET_TYPE_TOKEN) return out;
    return out + list(t.dims);
  }

  std::string list(collet_range r) const {
    std::string out = "[";
    for (uint32_t i = 0; i < r.count; ++i) out += (i ? "," : "") + std::to_string(collet_integers(p_, r)[i]);
    return out + "]";
  }

  std::string value(uint32_t v) const { return "%" + std::to_string(v); }
  std::string typed(uint32_t v) const { return value(v) + ": " + type(collet_value_at(p_, v)->type); }

  void region(uint32_t r, size_t indent) {
    const collet_region& region = *collet_region_at(p_, r);
    const std::string pad(indent, ' ');
    out_ += pad + (r == 0 ? "entry" : "region " + std::to_string(r));
    if (region.combine != COLLET_COMBINE_OTHER)
      out_ += std::string(" combine=") + (region.combine < std::size(kCombines) ? kCombines[region.combine] : "?");
    out_ += " (";
    for (uint32_t i = 0; i < region.arguments.count; ++i) {
      const uint32_t v = region.arguments.first + i;
      const uint32_t flags = collet_value_at(p_, v)->flags;
      out_ += (i ? ", " : "") + typed(v);
      if (flags & COLLET_VALUE_CONSTANT) out_ += " constant";
      if (flags & COLLET_VALUE_SCALAR) out_ += " scalar";
    }
    out_ += ") {\n";
    for (uint32_t i = 0; i < region.ops.count; ++i) op(region.ops.first + i, indent + 2);
    out_ += pad + "  return";
    for (uint32_t i = 0; i < region.results.count; ++i)
      out_ += (i ? ", " : " ") + value(collet_ref_at(p_, region.results.first + i));
    out_ += '\n' + pad + "}\n";
  }

  void op(uint32_t number, size_t indent) {
    const collet_op& op = *collet_op_at(p_, number);
    out_ += std::string(indent, ' ');
    for (uint32_t i = 0; i < op.results.count; ++i) out_ += (i ? ", " : "") + typed(op.results.first + i);
    out_ += (op.results.count ? " = " : "") + std::string(collet_op_name(op.opcode)) + "(";
    for (uint32_t i = 0; i < op.operands.count; ++i) out_ += (i ? ", " : "") + value(collet_operand(p_, &op, i));
    out_ += ")";
    attributes(op);
    if (op.name.count) out_ += "  \"" + text(op.name) + "\"";
    const uint64_t offset = op.results.count ? collet_value_at(p_, op.results.first)->offset : COLLET_NONE64;
    if (offset != COLLET_NONE64) out_ += " @" + std::to_string(offset);
    out_ += '\n';
    for (uint32_t i = 0; i < op.regions.count; ++i) region(op.regions.first + i, indent + 2);
  }

  void attributes(const collet_op& op) {
    const Record record = op_info(static_cast<Op>(op.opcode)).record;
    std::vector<int64_t> bytes(joint_record_size(record) / 8 + 1);
    collet_read_attributes(p_, &op, bytes.data(), joint_record_size(record));
    const char* at = reinterpret_cast<const char*>(bytes.data());
    if (record == Record::Constant) return constant(*reinterpret_cast<const uint32_t*>(at));
    for (const AbiField& f : abi_fields(record)) out_ += " " + std::string(f.name) + "=" + field(f, at + f.offset);
  }

  void constant(uint32_t index) {
    const collet_constant& c = *collet_constant_at(p_, index);
    out_ += " data=";
    const auto* data = static_cast<const unsigned char*>(collet_constant_data(p_, &c));
    char hex[3];
    for (uint64_t i = 0; i < c.bytes && i < kShownBytes; ++i) {
      std::snprintf(hex, sizeof hex, "%02x", data[i]);
      out_ += hex;
    }
    if (c.bytes > kShownBytes) out_ += "... (" + std::to_string(c.bytes) + " bytes)";
  }

  template <typename T>
  static const T& as(const char* at) {
    return *reinterpret_cast<const T*>(at);
  }

  std::string ranges(const char* at, std::initializer_list<const char*> names) const {
    std::string out = "{";
    const auto* r = reinterpret_cast<const collet_range*>(at);
    size_t i = 0;
    for (const char* name : names) {
      out += (i ? " " : "") + std::string(name) + list(r[i]);
      ++i;
    }
    return out + "}";
  }

  std::string field(const AbiField& f, const char* at) const {
    switch (f.kind) {
      case FieldKind::I64:
      case FieldKind::DIM:
        return std::to_string(as<int64_t>(at));
      case FieldKind::F32: {
        char buffer[32];
        std::snprintf(buffer, sizeof buffer, "%.9g", static_cast<double>(as<float>(at)));
        return buffer;
      }
      case FieldKind::ENUM: {
        const std::string_view known = enum_text(f.values, as<uint32_t>(at));
        return known.empty() ? std::to_string(as<uint32_t>(at)) : std::string(known);
      }
      case FieldKind::DIMS:
      case FieldKind::PRECISIONS:
      case FieldKind::PAIRS:
        return list(as<collet_range>(at));
      case FieldKind::STRING:
        return "\"" + text(as<collet_range>(at)) + "\"";
      case FieldKind::WINDOW:
        return ranges(at, {"size", "stride", "low", "high", "base_dilation", "window_dilation", "reversal"});
      case FieldKind::SLICES:
        return ranges(at, {"start", "limit", "stride"});
      case FieldKind::PADS:
        return ranges(at, {"low", "high", "interior"});
      case FieldKind::DIM_LABELS: {
        const auto& l = as<collet_dim_labels>(at);
        return "{input " + std::to_string(l.input_batch) + "," + std::to_string(l.input_feature) +
               list(l.input_spatial) + " kernel " + std::to_string(l.kernel_input_feature) + "," +
               std::to_string(l.kernel_output_feature) + list(l.kernel_spatial) + " output " +
               std::to_string(l.output_batch) + "," + std::to_string(l.output_feature) + list(l.output_spatial) + "}";
      }
      case FieldKind::GROUPS:
        return list(as<collet_groups>(at).ids) + "/" + std::to_string(as<collet_groups>(at).group_size);
      default:
        return std::to_string(as<uint32_t>(at));
    }
  }

  const collet_program* p_;
  std::string out_;
};

}  // namespace

Expected<std::string> print_program(const void* bytes, size_t size) {
  COLLET_TRY(check_program(bytes, size));
  return Printer(static_cast<const collet_program*>(bytes)).print();
}

}  // namespace collet::hlo
