// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/bytecode.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "hlo/stablehlo/bytecode_attributes.h"
#include "hlo/stablehlo/bytecode_file.h"
#include "hlo/stablehlo/op_schemas.h"

namespace collet::hlo::mlir {
namespace {

constexpr int kDeepest = 128;

// Bits of the byte that says which parts of an op are present.
constexpr uint8_t kHasAttributes = 0x01, kHasResults = 0x02, kHasOperands = 0x04, kHasSuccessors = 0x08,
                  kHasRegions = 0x10, kHasUseOrders = 0x20, kHasProperties = 0x40;

bool is_empty(AttrRef value) {
  return value && ((value->kind == Attr::Kind::String && value->text.empty()) ||
                   (value->kind == Attr::Kind::Dict && value->fields.empty()));
}

/// Reads the IR section: a tree of blocks.
class IrReader {
 public:
  IrReader(const BytecodeFile& file, Program& program) : file_(file), program_(program), attributes_(file, program) {}

  Status run() {
    ByteReader reader(file_.ir, file_.ir_offset);
    scopes_.emplace_back();
    Block* top = program_.make_block();
    COLLET_TRY(read_block(reader, top, 0));
    if (top->ops.size() != 1 || top->ops[0]->name != "builtin.module")
      return bytecode_error(file_.ir_offset, "the artifact holds something else than one module");
    program_.module = top->ops[0];
    return {};
  }

 private:
  /// The values of one isolated scope, by number. Null: the value has neither been defined nor used yet.
  struct Scope {
    std::vector<Value*> values;
    size_t next = 0;
  };

  Status damaged(const ByteReader& r, const char* what) { return bytecode_error(r.position(), what); }

  Expected<Value*> use(uint64_t index, const ByteReader& r) {
    Scope& scope = scopes_.back();
    if (index >= scope.values.size()) return bytecode_error(r.position(), "an op uses a value that is not there");
    if (!scope.values[index]) scope.values[index] = program_.make_value(nullptr);
    return scope.values[index];
  }

  /// Defines the next value of the scope, with its type. The value may have been used before its definition.
  Expected<Value*> define(TypeRef type, const ByteReader& r) {
    Scope& scope = scopes_.back();
    if (scope.next >= scope.values.size())
      return bytecode_error(r.position(), "there are more values than the region says");
    Value*& slot = scope.values[scope.next++];
    if (!slot) slot = program_.make_value(nullptr);
    slot->type = type;
    return slot;
  }

  Expected<TypeRef> read_type(uint64_t index, const ByteReader& r) {
    COLLET_ASSIGN(TypeRef type, attributes_.type(index));
    if (const Status counted = program_.charge(type); !counted.ok())
      return bytecode_error(r.position(), counted.message());
    return type;
  }

  Expected<AttrRef> read_attr(uint64_t index, const ByteReader& r) {
    COLLET_ASSIGN(AttrRef attr, attributes_.attr(index));
    if (const Status counted = program_.charge(attr); !counted.ok())
      return bytecode_error(r.position(), counted.message());
    return attr;
  }

  Status skip_use_orders(ByteReader& r, uint64_t values) {
    const uint64_t n = values > 1 ? r.count() : 1;
    for (uint64_t i = 0; i < n; ++i) {
      if (values > 1) r.varint();
      bool pairs;
      const uint64_t indices = r.flagged_varint(&pairs);
      if (indices > r.remaining()) r.fail();
      for (uint64_t j = 0; j < indices && !r.failed(); ++j) r.varint();
      if (r.failed()) return damaged(r, "an order of uses is cut short");
    }
    return {};
  }

  Status read_properties(ByteReader& r, const OpSchema* schema, std::string_view name, Op* op) {
    const uint64_t index = r.varint();
    if (r.failed() || index >= file_.properties.size()) return damaged(r, "there are no such properties");
    if (!schema)
      return unimplemented("artifact, byte " + std::to_string(r.position()) + ": the attributes of op " +
                           std::string(name) + " are not known");
    ByteReader p(file_.properties[index]);
    for (const OpSchema::Property& property : schema->properties) {
      bool present = true;
      uint64_t attr = 0;
      if (property.optional)
        attr = p.flagged_varint(&present);
      else
        attr = p.varint();
      if (p.failed()) return damaged(r, "the properties of an op are cut short");
      if (!present) continue;
      COLLET_ASSIGN(AttrRef value, read_attr(attr, r));
      // An artifact always has this property: an empty string or dictionary means that the op has none, whatever the
      // version of the custom call.
      if (property.name == "backend_config" && is_empty(value)) continue;
      if (property.name == "ragged_dot_dimension_numbers" && value->kind == Attr::Kind::Dict)
        op->attrs.insert(op->attrs.end(), value->fields.begin(), value->fields.end());
      else
        op->attrs.push_back({property.name, value});
    }
    return {};
  }

  Status read_dictionary(ByteReader& r, Op* op) {
    COLLET_ASSIGN(AttrRef dictionary, read_attr(r.varint(), r));
    for (const NamedAttr& field : dictionary->fields) op->attrs.push_back(field);
    return {};
  }

  Status read_op(ByteReader& r, Block* block, int depth) {
    const uint64_t name_index = r.varint();
    if (r.failed() || name_index >= file_.op_names.size()) return damaged(r, "there is no such op name");
    const BytecodeOpName& written = file_.op_names[name_index];
    const std::string_view dialect = file_.dialects[written.dialect];
    const OpSchema* schema = find_schema(dialect, written.name);
    if (!schema && dialect == "vhlo")
      return unimplemented("artifact, byte " + std::to_string(r.position()) + ": op vhlo." + std::string(written.name) +
                           " is of a newer version");
    const std::string full = std::string(dialect) + "." + std::string(written.name);
    Op* op = program_.make_op(program_.arena().string(schema ? schema->normal : full));
    block->ops.push_back(op);
    const uint8_t mask = r.byte();
    r.varint();  // location
    if (r.failed()) return damaged(r, "an op is cut short");
    if (mask & kHasAttributes) COLLET_TRY(read_dictionary(r, op));
    if (mask & kHasProperties) COLLET_TRY(read_properties(r, schema, full, op));
    if (mask & kHasResults) {
      const uint64_t n = r.count();
      for (uint64_t i = 0; i < n; ++i) {
        COLLET_ASSIGN(TypeRef type, read_type(r.varint(), r));
        COLLET_ASSIGN(Value * value, define(type, r));
        value->op = op;
        value->index = static_cast<uint32_t>(i);
        op->results.push_back(value);
      }
    }
    if (mask & kHasOperands) {
      const uint64_t n = r.count();
      for (uint64_t i = 0; i < n; ++i) {
        COLLET_ASSIGN(Value * value, use(r.varint(), r));
        op->operands.push_back(value);
      }
    }
    if (mask & kHasSuccessors)
      return unimplemented("artifact, byte " + std::to_string(r.position()) + ": branches between blocks");
    if (mask & kHasUseOrders) COLLET_TRY(skip_use_orders(r, op->results.size()));
    if (r.failed()) return damaged(r, "an op is cut short");
    if (mask & kHasRegions) COLLET_TRY(read_regions(r, op, depth));
    return {};
  }

  Status read_regions(ByteReader& r, Op* op, int depth) {
    if (depth > kDeepest) return damaged(r, "regions are nested too deeply");
    bool isolated;
    const uint64_t count = r.flagged_varint(&isolated);
    if (r.failed() || count > r.remaining()) return damaged(r, "the regions of an op are cut short");
    ByteReader nested;
    const bool lazy = isolated && file_.version >= 2;
    if (lazy) {
      BytecodeSection section;
      if (!read_section(r, &section) || section.id != 4) return damaged(r, "a nested region is cut short");
      nested = ByteReader(section.payload, section.offset);
    }
    ByteReader& from = lazy ? nested : r;
    for (uint64_t i = 0; i < count; ++i) {
      Region* region = program_.make_region();
      op->regions.push_back(region);
      if (isolated) scopes_.emplace_back();
      COLLET_TRY(read_region(from, region, depth + 1));
      if (isolated) scopes_.pop_back();
    }
    return {};
  }

  Status read_region(ByteReader& r, Region* region, int depth) {
    const uint64_t blocks = r.count();
    if (r.failed()) return damaged(r, "a region is cut short");
    if (blocks == 0) return {};
    const uint64_t values = r.varint();
    // Each value takes at least one byte, that of its type, and belongs to one region only.
    if (values > r.remaining() || values > file_.ir.size() - claimed_)
      return damaged(r, "a region claims too many values");
    claimed_ += values;
    Scope& scope = scopes_.back();
    const size_t before = scope.values.size(), next_before = scope.next;
    scope.next = before;
    scope.values.resize(before + values);
    for (uint64_t i = 0; i < blocks; ++i) {
      Block* block = program_.make_block();
      region->blocks.push_back(block);
      COLLET_TRY(read_block(r, block, depth));
    }
    Scope& after = scopes_.back();
    for (size_t i = before; i < after.values.size(); ++i)
      if (after.values[i] && !after.values[i]->type) return damaged(r, "an op uses a value that nobody defines");
    after.values.resize(before);
    after.next = next_before;
    return {};
  }

  Status read_block(ByteReader& r, Block* block, int depth) {
    bool has_arguments;
    const uint64_t ops = r.flagged_varint(&has_arguments);
    if (r.failed() || ops > r.remaining()) return damaged(r, "a block is cut short");
    if (has_arguments) {
      const uint64_t n = r.count();
      for (uint64_t i = 0; i < n; ++i) {
        bool has_location = true;
        const uint64_t type_index = file_.version >= 4 ? r.flagged_varint(&has_location) : r.varint();
        COLLET_ASSIGN(TypeRef type, read_type(type_index, r));
        if (has_location) r.varint();
        COLLET_ASSIGN(Value * value, define(type, r));
        value->index = static_cast<uint32_t>(i);
        block->arguments.push_back(value);
      }
      if (file_.version >= 3 && r.byte()) COLLET_TRY(skip_use_orders(r, n));
    }
    if (r.failed()) return damaged(r, "a block is cut short");
    for (uint64_t i = 0; i < ops; ++i) COLLET_TRY(read_op(r, block, depth));
    return {};
  }

  const BytecodeFile& file_;
  Program& program_;
  BytecodeAttributes attributes_;
  std::vector<Scope> scopes_;
  uint64_t claimed_ = 0;  // number of values of all regions so far
};

using Same = std::unordered_map<const Value*, Value*>;

/// True if the op only converts its operands between types of two dialects that are one type in the normal form.
bool is_plain_cast(const Op& op) {
  if (op.name != "builtin.unrealized_conversion_cast" || op.operands.size() != op.results.size()) return false;
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (!same_type(op.operands[i]->type, op.results[i]->type)) return false;
  return true;
}

/// Replaces the results of such casts by their operands.
void fold_casts(Block* block, Same& same) {
  const auto gone = [&](Op* op) {
    for (Value*& v : op->operands)
      if (const auto it = same.find(v); it != same.end()) v = it->second;
    if (is_plain_cast(*op)) {
      for (size_t i = 0; i < op->operands.size(); ++i) same[op->results[i]] = op->operands[i];
      return true;
    }
    for (Region* region : op->regions)
      for (Block* inner : region->blocks) fold_casts(inner, same);
    return false;
  };
  block->ops.erase(std::remove_if(block->ops.begin(), block->ops.end(), gone), block->ops.end());
}

using Lists = std::unordered_map<AttrRef, AttrRef>;

/// Converts attributes to the normal form. Many ops share an attribute, so each attribute is converted once.
void normalize(Op* op, Program& program, Lists& lists) {
  for (NamedAttr& attr : op->attrs) {
    if (attr.name == "value" || !is_list(attr.value)) continue;
    AttrRef& list = lists[attr.value];
    if (!list) list = as_list(attr.value, program);
    attr.value = list;
  }
  for (Region* region : op->regions)
    for (Block* block : region->blocks)
      for (Op* inner : block->ops) normalize(inner, program, lists);
}

}  // namespace

Expected<std::unique_ptr<Program>> read_bytecode(std::string_view bytes) {
  COLLET_ASSIGN(BytecodeFile file, open_bytecode(bytes));
  auto program = std::make_unique<Program>();
  program->bytecode_version = file.version;
  program->producer = program->arena().string(file.producer);
  program->set_file_bytes(bytes.size());
  COLLET_TRY(IrReader(file, *program).run());
  Lists lists;
  normalize(program->module, *program, lists);
  Same same;
  for (Region* region : program->module->regions)
    for (Block* block : region->blocks) fold_casts(block, same);
  return program;
}

}  // namespace collet::hlo::mlir
