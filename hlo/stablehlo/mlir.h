// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/base/arena.h"
#include "hlo/base/status.h"
#include "hlo/ir/limits.h"
#include "hlo/ir/literal.h"
#include "hlo/ir/types.h"

/// \file
/// The subset of MLIR that StableHLO programs need: a tree of ops with operands, attributes and regions. The readers of
/// artifacts and text produce it, and both writers start from it; import.h and export.h translate it to and from
/// hlo::Module.
///
/// Normal form: ops have the names of the StableHLO dialect without versions ("stablehlo.add", "func.func",
/// "chlo.erf_inv", "check.expect_eq"); attributes have the flat names of VHLO ("lhs_batching_dimensions", never a
/// dot_dimension_numbers record), lists of integers are Attr::Kind::Ints, element types are signless as StableHLO's.

namespace collet::hlo::mlir {

struct Type;
struct Attr;
struct Op;
struct Region;
using TypeRef = const Type*;
using AttrRef = const Attr*;

/// Uniform quantization of a storage type.
struct Quantization {
  hlo::Type storage = hlo::Type::S8;
  hlo::Type expressed = hlo::Type::F32;
  int64_t axis = -1;  ///< quantized dimension; -1: one scale for the whole tensor, or blocks
  /// For blocks (sub-channel quantization), the number of scales along each dimension of the tensor, whose product is the
  /// number of scales; they are in row-major order. Else empty.
  List<const int64_t> grid;
  /// For each dimension of `grid`, how many elements of the tensor share a scale; 0: the type does not name the dimension,
  /// and there is one scale along it.
  List<const int64_t> block_sizes;
  List<const double> scales;
  List<const int64_t> zero_points;
  int64_t storage_min = 0, storage_max = 0;
};

/// A type.
struct Type {
  enum class Kind : uint8_t {
    Scalar,     ///< an element type of HLO; i1 is PRED
    Quantized,  ///< a quantized element type of a tensor
    Tensor,
    UnrankedTensor,
    Token,
    Tuple,
    Function,
    None,
    Index,
    Buffer,  ///< a memref-like tensor
    Future,
    Witness,
    Unknown  ///< any other type, kept as its text
  };
  Kind kind = Kind::Unknown;
  hlo::Type scalar = hlo::Type::Invalid;  ///< for Scalar
  const Quantization* quantization = nullptr;
  TypeRef element = nullptr;    ///< for Tensor, Buffer: the element type, a Scalar, Quantized or Index
  List<const int64_t> dims;     ///< kUnbounded where dynamic
  List<const int64_t> bounds;   ///< bounds of dynamic dimensions, from type_extensions; empty: none
  List<const TypeRef> inputs;   ///< for Function: its inputs; for Tuple and Future: the element types
  List<const TypeRef> results;  ///< for Function: its results
  std::string_view text;        ///< for Unknown
  int64_t parts = 1;            ///< number of nested types, counted once per occurrence; Program::complete sets it
  int depth = 0;
};

struct NamedAttr {
  std::string_view name;
  AttrRef value = nullptr;
};

/// An attribute.
struct Attr {
  enum class Kind : uint8_t {
    Unit,
    Bool,
    Int,
    Float,
    String,
    Symbol,  ///< @name
    Array,
    Dict,
    Type,
    Ints,      ///< list of integers; `dims` has its shape where it was a tensor of rank 2
    Bools,     ///< list of booleans, in `ints`
    Dense,     ///< elements of a tensor, in `bytes`
    Enum,      ///< value of an enumeration, by its spelling: "EQ", "THREE_FRY"
    Alias,     ///< output_operand_alias: ints = {n, output indices..., operand, operand indices...}
    Accuracy,  ///< result_accuracy: floats = {atol, rtol}, integer = ulps, text = mode
    Location,
    Raw  ///< anything else, by its text
  };
  Kind kind = Kind::Unit;
  int64_t integer = 0;  ///< Int, Bool
  double number = 0;    ///< Float
  /// Type of Int, Float and Dense; element type of Ints if not i64; the type that a Type attribute holds.
  TypeRef type = nullptr;
  std::string_view text;         ///< String, Symbol, Enum, Raw
  List<const AttrRef> items;     ///< Array
  List<const NamedAttr> fields;  ///< Dict
  List<const int64_t> ints;      ///< Ints, Bools, Alias
  List<const int64_t> dims;      ///< shape of Ints of rank above 1
  List<const double> floats;     ///< Accuracy
  /// For Dense: row-major elements, as HLO literals store them (one byte per pred and per sub-byte element); one
  /// element for a splat.
  std::string_view bytes;
  const Literal* data = nullptr;  ///< for long `bytes`: an array of u8 that owns them, so that a module can share them
  bool splat = false;
  int64_t parts = 1;  ///< number of nested attributes, counted as in Type::parts; Program::complete sets it
  int depth = 0;
};

/// A result of an op, or an argument of a block.
struct Value {
  TypeRef type = nullptr;
  const Op* op = nullptr;  ///< null for arguments of a block
  uint32_t index = 0;
  std::string_view name;  ///< its name in text, without %
};

struct Block {
  std::vector<Value*> arguments;
  std::vector<Op*> ops;
};

struct Region {
  std::vector<Block*> blocks;
};

struct Op {
  std::string_view name;
  std::vector<Value*> operands;
  std::vector<Value*> results;
  std::vector<NamedAttr> attrs;
  std::vector<Region*> regions;
  uint32_t line = 0;  ///< line in the text; 0: none

  /// Returns the attribute of that name; null if there is none.
  AttrRef attr(std::string_view wanted) const {
    for (const NamedAttr& a : attrs)
      if (a.name == wanted) return a.value;
    return nullptr;
  }
  const Block* body(size_t region = 0) const {
    return region < regions.size() && !regions[region]->blocks.empty() ? regions[region]->blocks[0] : nullptr;
  }
};

/// A program, which owns all its ops, types and attributes.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Op* module = nullptr;       ///< the builtin.module
  std::string_view producer;  ///< who wrote the artifact, for example "StableHLO_v1.13.0"
  uint32_t bytecode_version = 0;

  Arena& arena() { return arena_; }
  Op* make_op(std::string_view name) {
    Op& op = ops_.emplace_back();
    op.name = name;
    return &op;
  }
  Value* make_value(TypeRef type) {
    Value& value = values_.emplace_back();
    value.type = type;
    return &value;
  }
  Region* make_region() { return &regions_.emplace_back(); }
  Block* make_block() { return &blocks_.emplace_back(); }
  Value* add_result(Op* op, TypeRef type) {
    Value* value = make_value(type);
    value->op = op;
    value->index = static_cast<uint32_t>(op->results.size());
    op->results.push_back(value);
    return value;
  }
  Attr* make_attr(Attr::Kind kind) {
    Attr* out = arena_.make<Attr>();
    out->kind = kind;
    return out;
  }
  /// Stores a copy of the elements of a Dense attribute.
  void set_bytes(Attr* attr, std::string_view bytes);
  Type* make_type(Type::Kind kind) {
    Type* out = arena_.make<Type>();
    out->kind = kind;
    return out;
  }
  /// The last step in creating a type or attribute from a file: checks that its parts are consistent and within the
  /// limits.
  Status complete(Type* type);
  Status complete(Attr* attr);
  /// Counts one use of a type that a file defines once and uses repeatedly. The permitted number grows with the size of
  /// the file.
  Status charge(TypeRef type) { return budget_.charge(type->parts, type->depth); }
  Status charge(AttrRef attr);
  void set_file_bytes(size_t bytes) {
    file_bytes_ = static_cast<int64_t>(bytes);
    budget_ = ShapeBudget(file_bytes_);
  }
  int64_t file_bytes() const { return file_bytes_; }
  TypeRef scalar(hlo::Type type) {
    Type* out = make_type(Type::Kind::Scalar);
    out->scalar = type;
    return out;
  }
  TypeRef tensor(TypeRef element, std::span<const int64_t> dims) {
    Type* out = make_type(Type::Kind::Tensor);
    out->element = element;
    out->dims = arena_.list<const int64_t>(dims);
    return out;
  }

 private:
  Arena arena_;
  ShapeBudget budget_;
  int64_t file_bytes_ = 0;
  std::deque<Op> ops_;
  std::deque<Value> values_;
  std::deque<Region> regions_;
  std::deque<Block> blocks_;
  std::deque<Literal> data_;  // of long Dense attributes
};

/// True if two types have the same text.
bool same_type(TypeRef a, TypeRef b);
/// Returns the type as MLIR prints it, for messages and for the writer: "tensor<2x?xf32>".
std::string to_string(TypeRef type);
/// Returns the size of one element in Attr::bytes; 0 if the element type is not supported.
int element_bytes(TypeRef element);
/// Returns the HLO element type: a scalar's own, a quantized type's storage type, S64 for index; Invalid otherwise.
hlo::Type element_type(TypeRef element);
/// Returns the element type that a list of integers records: none for i64, the usual type, and for booleans.
TypeRef list_type(TypeRef element);
/// True if an attribute may be a list of integers or booleans: a tensor of them of one or two dimensions. A longer
/// splat is never such a list, only the value of a constant.
bool is_list(AttrRef attr);
/// Converts the elements of a Dense attribute of integers or booleans into Ints or Bools of the same dimensions.
Attr* as_list(AttrRef dense, Program& program);
/// Interprets the lowest `width` bits as a signed number.
int64_t sign_extend(uint64_t bits, int width);
/// Converts elements from MLIR's storage, which has integers of fewer than eight bits without sign extension, to HLO's.
void extend_elements(std::string& bytes, hlo::Type type);
/// Returns the product of the dimensions; -1 if some are dynamic.
int64_t element_count(TypeRef tensor);

}  // namespace collet::hlo::mlir
