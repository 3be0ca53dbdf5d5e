// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <unordered_map>

#include "hlo/stablehlo/bytecode_encoder.h"
#include "hlo/stablehlo/op_schemas.h"
#include "hlo/stablehlo/portable_ops.h"
#include "hlo/stablehlo/write.h"

// Writes portable artifacts: converts the program to a tree of encoded ops (with casts between StableHLO's types and
// those of other dialects), then numbers and writes their values.

namespace collet::hlo::mlir {
namespace {

using Dialect = BytecodeEncoder::Dialect;

// Bits of an op's mask, and section ids, as in bytecode.cc and bytecode_file.cc.
constexpr uint8_t kHasAttributes = 0x01, kHasResults = 0x02, kHasOperands = 0x04, kHasRegions = 0x10,
                  kHasProperties = 0x40;
constexpr uint8_t kStrings = 0, kDialects = 1, kAttrTypes = 2, kAttrTypeOffsets = 3, kIr = 4, kResources = 5,
                  kResourceOffsets = 6, kPropertyTable = 8;
constexpr uint64_t kMixedSince = vhlo_version(1, 11, 0);

uint64_t bytecode_version(uint64_t version) {
  if (version < vhlo_version(0, 10, 0)) return 0;
  if (version < vhlo_version(0, 12, 0)) return 1;
  if (version < vhlo_version(0, 14, 0)) return 3;
  return version < vhlo_version(0, 15, 0) ? 4 : 6;
}

struct WireBlock;
struct WireOp {
  uint64_t name = 0;
  int64_t attributes = -1, properties = -1;
  std::vector<const Value*> operands, results;
  std::vector<uint64_t> result_types;
  std::vector<WireBlock*> regions;  // null: an empty region
  bool isolated = false;
};
struct WireBlock {
  std::vector<const Value*> arguments;
  std::vector<uint64_t> argument_types;
  std::vector<WireOp*> ops;
};

class Writer {
 public:
  /// The patch number of the version is ignored, because patch versions change no op.
  explicit Writer(uint64_t version)
      : patch_(version & 0xFFFFF), version_(version - patch_), format_(bytecode_version(version)), encoder_(version_) {}

  Expected<std::string> run(const Program& program) {
    if (!program.module) return invalid_argument("the program holds no module");
    encoder_.dialect("builtin");
    encoder_.dialect("vhlo");
    location_ = encoder_.unknown_location();
    WireBlock top;
    COLLET_TRY(lower(*program.module, *program.module, top));
    ByteWriter ir;
    std::unordered_map<const Value*, uint64_t> numbers;
    write_block(top, numbers, 0, ir);
    return assemble(ir.take());
  }

 private:
  Status fail(const Op& op, std::string_view message) const {
    return unimplemented(std::string(op.name) + ": " + std::string(message));
  }

  WireOp* make_op() { return &ops_.emplace_back(); }

  uint64_t op_name(std::string_view dialect, std::string_view name) {
    const uint32_t d = encoder_.dialect(dialect);
    encoder_.string(name);
    const auto key = std::make_pair(d, std::string(name));
    const auto it = op_numbers_.find(key);
    if (it != op_numbers_.end()) return it->second;
    // The final number is assigned per dialect when all ops are known; until then an op is numbered by its position in
    // this list.
    op_numbers_.emplace(key, op_names_.size());
    op_names_.push_back(key);
    return op_names_.size() - 1;
  }

  /// Emits a cast of a value to the types of dialect `to`.
  Expected<const Value*> cast(const Value* from, Dialect to, WireBlock& block) {
    if (version_ < kMixedSince) return unimplemented("artifacts below 1.11.0 hold StableHLO's ops alone");
    Value* out = scratch_.make_value(from->type);
    WireOp* op = make_op();
    op->name = op_name("builtin", "unrealized_conversion_cast");
    op->operands = {from};
    op->results = {out};
    COLLET_ASSIGN(uint64_t type, encoder_.type(from->type, to));
    op->result_types = {type};
    block.ops.push_back(op);
    return out;
  }

  Status add_attributes(const Op& op, const OpSchema& schema, Dialect dialect, WireOp* wire) {
    const bool builtin = dialect == Dialect::Builtin;
    std::vector<std::pair<std::string_view, uint64_t>> dictionary;
    ByteWriter properties;
    for (const OpSchema::Property& property : schema.properties) {
      const AttrRule* rule = builtin ? nullptr : find_attr_rule(property.name);
      AttrRef value = op.attr(property.name);
      if (!value && property.optional) {
        if (format_ >= 5) properties.flagged_varint(0, false);
        continue;
      }
      if (!value && rule) value = default_attr(scratch_, op, *rule);
      if (!value) return fail(op, "lacks its attribute " + std::string(property.name));
      auto number = encoder_.attr(value, dialect, rule);
      if (!number.ok()) return fail(op, std::string(property.name) + ": " + std::string(number.status().message()));
      if (format_ < 5)
        dictionary.emplace_back(property.name, *number);
      else if (property.optional)
        properties.flagged_varint(*number, true);
      else
        properties.varint(*number);
    }
    for (const NamedAttr& a : op.attrs) {
      if (!a.value || a.value->kind == Attr::Kind::Location) continue;
      const auto stands = [&](const OpSchema::Property& p) { return p.name == a.name; };
      if (std::any_of(schema.properties.begin(), schema.properties.end(), stands)) continue;
      if (is_own_attribute(op.name, a.name)) {
        // An attribute that this version's form of the op lacks may be left out if it has its default.
        const AttrRule* rule = find_attr_rule(a.name);
        if (rule && is_default_attr(*rule, a.value)) continue;
        return fail(op, "has no attribute " + std::string(a.name) + " in this version");
      }
      auto number = encoder_.attr(a.value, dialect);
      if (!number.ok()) return fail(op, std::string(a.name) + ": " + std::string(number.status().message()));
      dictionary.emplace_back(a.name, *number);
    }
    if (!dictionary.empty()) {
      std::sort(dictionary.begin(), dictionary.end());
      COLLET_ASSIGN(uint64_t number, encoder_.dictionary(dictionary));
      wire->attributes = static_cast<int64_t>(number);
    }
    if (format_ >= 5 && !schema.properties.empty()) {
      const auto [it, added] = property_numbers_.emplace(properties.bytes(), properties_.size());
      if (added) properties_.push_back(properties.bytes());
      wire->properties = static_cast<int64_t>(it->second);
    }
    return {};
  }

  Status check_version(const Op& op) const {
    const bool collective = op.name == "stablehlo.all_reduce" || op.name == "stablehlo.all_gather" ||
                            op.name == "stablehlo.all_to_all" || op.name == "stablehlo.collective_broadcast";
    if (collective && op.operands.size() != 1 && version_ < vhlo_version(1, 5, 0))
      return fail(op, "has several operands only since version 1.5.0");
    if (op.name == "stablehlo.composite" && !op.regions.empty() && version_ < vhlo_version(1, 14, 0))
      return fail(op, "has regions only since version 1.14.0");
    AttrRef config = op.attr("backend_config");
    if (op.name == "stablehlo.custom_call" && config && config->kind == Attr::Kind::Dict &&
        version_ < vhlo_version(1, 3, 0))
      return fail(op, "has a dictionary as backend_config only since version 1.3.0");
    if (version_ < vhlo_version(0, 17, 0) && op.body() && op.name != "func.func") {
      // Reductions whose result has a wider element type than the operand.
      static constexpr std::string_view kWidening[] = {"stablehlo.reduce",     "stablehlo.reduce_window",
                                                       "stablehlo.all_reduce", "stablehlo.reduce_scatter",
                                                       "stablehlo.scatter",    "stablehlo.select_and_scatter"};
      if (std::find(std::begin(kWidening), std::end(kWidening), op.name) != std::end(kWidening))
        for (size_t i = 0; i < op.results.size() && i < op.operands.size(); ++i) {
          TypeRef a = op.operands[i]->type, b = op.results[i]->type;
          if (a && b && a->element && b->element && element_type(a->element) != element_type(b->element))
            return fail(op, "widens its elements only since version 0.17.0");
        }
    }
    return {};
  }

  Status lower(const Op& source, const Op& parent, WireBlock& block) {
    const Op* portable = portable_form(source, scratch_);
    const Op& op = portable ? *portable : source;
    const bool ends_sdy = op.name == "stablehlo.return" && parent.name.starts_with("sdy.");
    const OpSchema* schema = ends_sdy ? find_schema("sdy", "return") : find_schema_for(op.name, version_);
    if (!schema) {
      return fail(op, op.name.starts_with("stablehlo.") ? "artifacts of this version have no such op"
                                                        : "artifacts cannot hold this op");
    }
    COLLET_TRY(check_version(op));
    const size_t dot = schema->name.find('.');
    const bool vhlo = dot == std::string_view::npos;
    const bool module = op.name == "builtin.module";
    const Dialect dialect = vhlo ? Dialect::Vhlo : Dialect::Builtin;
    if (!vhlo && !module && version_ < kMixedSince)
      return fail(op, "artifacts below 1.11.0 hold StableHLO's ops alone");
    WireOp* wire = make_op();
    wire->name =
        vhlo ? op_name("vhlo", schema->name) : op_name(schema->name.substr(0, dot), schema->name.substr(dot + 1));
    wire->isolated = module || op.name == "func.func";
    COLLET_TRY(add_attributes(op, *schema, dialect, wire));
    for (const Value* v : op.operands) {
      if (!vhlo) {
        COLLET_ASSIGN(v, cast(v, Dialect::Builtin, block));
      }
      wire->operands.push_back(v);
    }
    std::vector<std::pair<const Value*, const Value*>> casts;
    for (const Value* v : op.results) {
      auto type = encoder_.type(v->type, dialect);
      if (!type.ok()) return fail(op, type.status().message());
      wire->result_types.push_back(*type);
      if (vhlo) {
        wire->results.push_back(v);
      } else {
        Value* raw = scratch_.make_value(v->type);
        wire->results.push_back(raw);
        casts.emplace_back(raw, v);
      }
    }
    block.ops.push_back(wire);
    for (const Region* region : op.regions) COLLET_TRY(lower_region(op, *region, vhlo || module, wire));
    for (const auto& [raw, v] : casts) COLLET_TRY(cast_to(raw, v, block));
    return {};
  }

  /// Emits a cast that defines `to`, of a StableHLO type, from a value of a builtin type.
  Status cast_to(const Value* raw, const Value* to, WireBlock& block) {
    WireOp* op = make_op();
    op->name = op_name("builtin", "unrealized_conversion_cast");
    op->operands = {raw};
    op->results = {to};
    COLLET_ASSIGN(uint64_t type, encoder_.type(to->type, Dialect::Vhlo));
    op->result_types = {type};
    block.ops.push_back(op);
    return {};
  }

  Status lower_region(const Op& op, const Region& region, bool vhlo, WireOp* wire) {
    if (region.blocks.empty()) {
      wire->regions.push_back(nullptr);
      return {};
    }
    if (region.blocks.size() > 1) return fail(op, "has regions of several blocks");
    WireBlock* block = &blocks_.emplace_back();
    wire->regions.push_back(block);
    std::vector<std::pair<const Value*, const Value*>> casts;
    for (const Value* v : region.blocks[0]->arguments) {
      auto type = encoder_.type(v->type, vhlo ? Dialect::Vhlo : Dialect::Builtin);
      if (!type.ok()) return fail(op, type.status().message());
      block->argument_types.push_back(*type);
      const Value* argument = v;
      if (!vhlo) {
        argument = scratch_.make_value(v->type);
        casts.emplace_back(argument, v);
      }
      block->arguments.push_back(argument);
    }
    for (const auto& [raw, v] : casts) COLLET_TRY(cast_to(raw, v, *block));
    for (const Op* inner : region.blocks[0]->ops) COLLET_TRY(lower(*inner, op, *block));
    return {};
  }

  // Writing.

  using Numbers = std::unordered_map<const Value*, uint64_t>;

  /// Numbers the ops in the order of their dialects, as the file does.
  void number_ops() {
    final_op_.assign(op_names_.size(), 0);
    uint64_t next = 0;
    for (uint32_t d = 0; d < encoder_.dialects().size(); ++d)
      for (size_t i = 0; i < op_names_.size(); ++i)
        if (op_names_[i].first == d) final_op_[i] = next++;
  }

  static uint64_t count_values(const WireBlock& block) {
    uint64_t count = block.arguments.size();
    for (const WireOp* op : block.ops) count += op->results.size();
    return count;
  }

  /// Writes a block; its values get numbers from `base` on.
  void write_block(const WireBlock& block, Numbers& numbers, uint64_t base, ByteWriter& w) {
    if (final_op_.size() != op_names_.size()) number_ops();
    uint64_t next = base;
    for (const Value* v : block.arguments) numbers[v] = next++;
    for (const WireOp* op : block.ops)
      for (const Value* v : op->results) numbers[v] = next++;
    w.flagged_varint(block.ops.size(), !block.arguments.empty());
    if (!block.arguments.empty()) {
      w.varint(block.arguments.size());
      for (uint64_t type : block.argument_types) {
        if (format_ >= 4) {
          w.flagged_varint(type, false);
        } else {
          w.varint(type);
          w.varint(location_);
        }
      }
      if (format_ >= 3) w.byte(0);
    }
    for (const WireOp* op : block.ops) write_op(*op, numbers, next, w);
  }

  void write_op(const WireOp& op, Numbers& numbers, uint64_t base, ByteWriter& w) {
    w.varint(final_op_[op.name]);
    uint8_t mask = 0;
    if (op.attributes >= 0) mask |= kHasAttributes;
    if (op.properties >= 0) mask |= kHasProperties;
    if (!op.results.empty()) mask |= kHasResults;
    if (!op.operands.empty()) mask |= kHasOperands;
    if (!op.regions.empty()) mask |= kHasRegions;
    w.byte(mask);
    w.varint(location_);
    if (op.attributes >= 0) w.varint(static_cast<uint64_t>(op.attributes));
    if (op.properties >= 0) w.varint(static_cast<uint64_t>(op.properties));
    if (!op.results.empty()) {
      w.varint(op.results.size());
      for (uint64_t type : op.result_types) w.varint(type);
    }
    if (!op.operands.empty()) {
      w.varint(op.operands.size());
      for (const Value* v : op.operands) w.varint(numbers[v]);
    }
    if (op.regions.empty()) return;
    w.flagged_varint(op.regions.size(), op.isolated);
    Numbers own;
    ByteWriter inside;
    const bool section = op.isolated && format_ >= 2;
    ByteWriter& to = section ? inside : w;
    for (const WireBlock* block : op.regions) {
      if (!block) {
        to.varint(0);
        continue;
      }
      to.varint(1);
      to.varint(count_values(*block));
      write_block(*block, op.isolated ? own : numbers, op.isolated ? 0 : base, to);
    }
    if (section) write_section(w, kIr, inside.bytes());
  }

  static void write_section(ByteWriter& w, uint8_t id, std::string_view payload) {
    w.byte(id);
    w.varint(payload.size());
    w.append(payload);
  }

  std::string dialect_section() {
    ByteWriter w;
    w.varint(encoder_.dialects().size());
    for (const std::string& name : encoder_.dialects()) {
      const uint64_t string = encoder_.string(name);
      if (format_ >= 1)
        w.flagged_varint(string, false);
      else
        w.varint(string);
    }
    if (format_ >= 4) w.varint(op_names_.size());
    for (uint32_t d = 0; d < encoder_.dialects().size(); ++d) {
      std::vector<std::string_view> names;
      for (const auto& [dialect, name] : op_names_)
        if (dialect == d) names.push_back(name);
      if (names.empty()) continue;
      w.varint(d);
      w.varint(names.size());
      for (std::string_view name : names) {
        if (format_ >= 5)
          w.flagged_varint(encoder_.string(name), true);
        else
          w.varint(encoder_.string(name));
      }
    }
    return w.take();
  }

  static void write_entries(const std::vector<BytecodeEncoder::Entry>& entries, ByteWriter& offsets, ByteWriter& data) {
    for (size_t i = 0; i < entries.size();) {
      size_t end = i + 1;
      while (end < entries.size() && entries[end].dialect == entries[i].dialect) ++end;
      offsets.varint(entries[i].dialect);
      offsets.varint(end - i);
      for (; i < end; ++i) {
        offsets.flagged_varint(entries[i].bytes.size(), entries[i].custom);
        data.append(entries[i].bytes);
      }
    }
  }

  std::string assemble(const std::string& ir) {
    ByteWriter offsets, data, out;
    offsets.varint(encoder_.attrs().size());
    offsets.varint(encoder_.types().size());
    write_entries(encoder_.attrs(), offsets, data);
    write_entries(encoder_.types(), offsets, data);
    const std::string dialects = dialect_section();
    out.append("ML\xEFR");
    out.varint(format_);
    out.append("StableHLO_v" + std::to_string(version_ >> 40) + "." + std::to_string((version_ >> 20) & 0xFFFFF) + "." +
               std::to_string(patch_));
    out.byte(0);
    write_section(out, kDialects, dialects);
    write_section(out, kAttrTypes, data.bytes());
    write_section(out, kAttrTypeOffsets, offsets.bytes());
    write_section(out, kIr, ir);
    write_section(out, kResources, "");
    write_section(out, kResourceOffsets, "\x01");
    ByteWriter strings;
    strings.varint(encoder_.strings().size());
    // Lengths are in reverse order.
    for (size_t i = encoder_.strings().size(); i-- > 0;) strings.varint(encoder_.strings()[i].size() + 1);
    for (const std::string& s : encoder_.strings()) {
      strings.append(s);
      strings.byte(0);
    }
    write_section(out, kStrings, strings.bytes());
    if (format_ >= 5) {
      ByteWriter properties;
      properties.varint(properties_.size());
      for (const std::string& p : properties_) {
        properties.varint(p.size());
        properties.append(p);
      }
      write_section(out, kPropertyTable, properties.bytes());
    }
    return out.take();
  }

  const uint64_t patch_, version_, format_;
  BytecodeEncoder encoder_;
  Program scratch_;
  std::deque<WireOp> ops_;
  std::deque<WireBlock> blocks_;
  uint64_t location_ = 0;
  std::map<std::pair<uint32_t, std::string>, uint64_t> op_numbers_;
  std::vector<std::pair<uint32_t, std::string>> op_names_;
  std::vector<uint64_t> final_op_;
  std::unordered_map<std::string, uint64_t> property_numbers_;
  std::vector<std::string> properties_;
};

}  // namespace

Expected<uint64_t> parse_vhlo_version(std::string_view text) {
  uint64_t parts[3] = {0, 0, 0};
  size_t count = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at < end && count < 3) {
    const auto [next, bad] = std::from_chars(at, end, parts[count]);
    if (bad != std::errc() || parts[count] >= 1000) break;
    ++count;
    at = next;
    if (at < end && *at == '.' && count < 3) ++at;
  }
  if (count != 3 || at != end) return invalid_argument("'" + std::string(text) + "' is no version such as 1.17.0");
  const uint64_t version = vhlo_version(parts[0], parts[1], parts[2]);
  if (version < vhlo_version(0, 9, 0) || version > kNewestVhlo)
    return invalid_argument("artifacts of version " + std::string(text) + " cannot be written: 0.9.0 to 1.20.0 can");
  return version;
}

Expected<std::string> write_bytecode(const Program& program, uint64_t version) {
  return Writer(version).run(program);
}

}  // namespace collet::hlo::mlir
