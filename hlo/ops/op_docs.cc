// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/op_docs.h"

#include <algorithm>
#include <array>
#include <set>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

struct ClassText {
  std::string_view name, meaning;
};
constexpr std::array<ClassText, 6> kClasses{{
    {"core", "every backend that runs kernels runs these, on the element types it declares"},
    {"exact", "optional; what a backend does not claim is rewritten into core ops with the same bits"},
    {"math", "optional; else a polynomial or iteration over core ops"},
    {"structured", "optional; else a program of core ops"},
    {"executor", "needs no kernel: control flow, tuples, aliases, tokens, constants"},
    {"communication", "between participants; a copy in a group of one"},
}};

// Elementwise ops on floats whose expansion needs no integer kernels.
constexpr std::array kWithoutIntegers = {Op::CEIL, Op::CLAMP, Op::IMAG, Op::MINIMUM, Op::REAL, Op::SUBTRACT};
// Elementwise ops on floats whose expansion needs integers of twice the width.
constexpr std::array kWithWiderIntegers = {Op::COSINE, Op::SINE, Op::TAN};

struct FamilyText {
  Family family;
  std::string_view title, rules;
  std::string_view edges = {};  // results at overflow, division by zero, NaN and the like
};
// The constraints in short; the labels in error messages are those of StableHLO's specification.
constexpr FamilyText kFamilies[] = {
    {Family::elementwise, "Elementwise",
     "Operands have one shape and one element type; there is no implicit broadcast, but the bounds of clamp and the "
     "predicate of select may be scalars. abs, real and imag of complex numbers give their real type; compare and "
     "is-finite give pred; complex takes f32 or f64 parts. abs and sign take no unsigned numbers; "
     "compare takes complex numbers in the directions EQ and NE only.",
     "Integers wrap around. x divided by 0 has all bits set (-1, or the greatest unsigned number), x remainder 0 is x; "
     "the least number divided by -1 is itself, with remainder 0; its abs and negate are itself, too. Quotients are "
     "rounded "
     "toward zero. A remainder has the sign of the dividend; of floats it is that of fmod, and NaN for a divisor of 0. "
     "Shifts take the second operand as unsigned: by the width or more, shift-left and shift-right-logical give 0, "
     "shift-right-arithmetic the sign in all bits. x to the power of a negative integer is 0, but for x of 1 and -1; "
     "0 to the power of 0 is 1. maximum and minimum give NaN where an operand is NaN, and +0 is greater than -0; clamp "
     "is the minimum of the upper bound and the maximum of the lower one and x. compare takes -0 and +0 for equal, and "
     "NaN for unequal to all; with type TOTALORDER numbers stand between -NaN and NaN, and -0 before +0. sign gives "
     "-0, +0 and NaN as they are. For pred operands, add and maximum compute the logical or, multiply and minimum the "
     "logical and."},
    {Family::convert, "Conversion",
     "The result has the operand's dimensions and the element type that is stated. bitcast-convert between types of "
     "different width splits off or takes in a last dimension of the widths' ratio. stochastic-convert takes unsigned "
     "random bits of the operand's width.",
     "A float that becomes an integer is rounded toward zero; outside of the range it becomes the nearest bound, NaN "
     "becomes 0. Integers "
     "to narrower ones keep the low bits. A result of a float type is rounded once, to nearest, ties to even; what is "
     "too large "
     "becomes infinity, or NaN or the greatest number of a format that has none. To pred all but 0 is 1, NaN and "
     "numbers with an imaginary part alone too. To other types the real part of a complex number is taken. "
     "stochastic-convert to an integer rounds toward zero, but away from zero "
     "where its random bits, as a number of b bits, are less than floor(f * 2^b) for the fraction f that is cut off."},
    {Family::movement, "Data movement",
     "Elements are copied unchanged. broadcast names a different result dimension for each operand dimension, of the "
     "same size. reshape keeps the number of elements; transpose takes a permutation. Slices lie inside of the "
     "operand; "
     "the starts of dynamic slices are integer scalars, one for each dimension. Interior padding is not negative. "
     "Operands of concatenate differ in the one dimension only.",
     "The starts of dynamic slices are clamped so that the slice lies inside: also with negative or unsigned 64-bit "
     "starts. Negative padding cuts off."},
    {Family::dot, "Products",
     "Batch and contracting dimensions are named in pairs of equal size, none twice. The result has the batch "
     "dimensions, then the free ones of lhs, then those of rhs; it may state a wider element type.",
     "Sums of integers wrap around in the result's type; a sum over no elements is 0. In ragged-dot, the rows of lhs "
     "along its ragged dimension belong to groups one after another, of which the third operand has the sizes, and "
     "each group has a matrix of rhs; the rows behind the last group give 0. In scaled-dot, a scale stands for a "
     "block of elements, as many as its dimension goes into that of its operand, and each element counts times its "
     "scale."},
    {Family::convolution, "Convolution",
     "Each dimension label occurs once; the window has the kernel's spatial sizes. Feature groups divide the input's "
     "and the output's features, batch groups the batch; not both exceed one."},
    {Family::reduce, "Reduction and map",
     "n inputs of one shape and n scalar initial values; the computation takes 2n scalars and gives n of the initial "
     "values' types. Dimensions are in range and distinct. map applies a computation of scalars to every element.",
     "The order in which elements are combined is free, and so is how often, but at least once, the initial value is "
     "combined with them. A reduction "
     "of no elements gives the initial value."},
    {Family::window, "Windows",
     "The window has one entry for each dimension; sizes, strides and dilations are positive. The source of "
     "select-and-scatter has one element for each window.",
     "What lies in the padding of reduce-window is left out: a window of padding alone gives the initial value."},
    {Family::indexing, "Gather and scatter",
     "Indices are integers; index_vector_dim may be one past the last dimension, which then has size 1. Offset or "
     "window, collapsed or inserted, and batching dimensions together are the operand's, each once, in ascending "
     "order. Slice sizes do not exceed the operand's, and are at most 1 where collapsed or batching.",
     "gather clamps its starts so that the slice lies inside; scatter leaves out an update whose window does not lie "
     "inside as a whole."},
    {Family::sort, "Sort",
     "Operands have one shape; the comparator takes two scalars for each operand and gives pred. k of topk does not "
     "exceed the last dimension."},
    {Family::rng, "Random numbers",
     "rng takes two scalars of the result's type; a normal distribution is of floats. rng-bit-generator gives the new "
     "state, shaped as the old one, and the bits."},
    {Family::linalg, "Linear algebra",
     "The last two dimensions of a are equal; those before are batch dimensions, equal in a and b."},
    {Family::fft, "Fourier transform",
     "One to three lengths, which are the real side's last dimensions; the complex side of RFFT and IRFFT has n / 2 + "
     "1 "
     "in the last one."},
    {Family::batch_norm, "Batch normalisation",
     "Scale, offset, mean and variance have one entry for each feature and the operand's type."},
    {Family::control_flow, "Control flow",
     "Operands have the shapes of the parameters of what is called. The condition of while gives pred[], its body the "
     "shape of its parameter. The branches of conditional give one shape. A fused computation has one caller, and uses "
     "all of its instructions."},
    {Family::structure, "Structure", "Tuples, constants, parameters, tokens and identities."},
    {Family::custom_call, "Custom calls",
     "The result's shape is stated; aliased operands and results have equal shapes."},
    {Family::collective, "Collectives",
     "Replica groups hold each id once, from 0; their number is that of the participants. Sizes along the dimension "
     "differ by the size of a group. use_global_device_ids needs a channel. Sources and targets of a permutation are "
     "distinct."},
    {Family::asynchronous, "Asynchronous forms",
     "The shape of a start is ((operands), result, ...); a start has one user, an update or a done, which run the same "
     "computation."},
    {Family::host_io, "Host and channels",
     "Tokens order them. send and recv have one user, their done, with the same channel."},
    {Family::dynamic_shape, "Dynamic sizes", "Sizes are s32 scalars; a dimension whose size is set keeps its bound."},
};

std::string_view kind_text(FieldKind kind) {
  switch (kind) {
    case FieldKind::I64:
    case FieldKind::U32:
      return "integer";
    case FieldKind::BOOL:
    case FieldKind::NOT_BOOL:
      return "boolean";
    case FieldKind::F32:
      return "float";
    case FieldKind::ENUM:
      return "one of";
    case FieldKind::DIM:
      return "dimension";
    case FieldKind::DIMS:
      return "list of dimensions";
    case FieldKind::STRING:
      return "string";
    case FieldKind::WINDOW:
      return "window";
    case FieldKind::SLICES:
      return "start, limit, stride";
    case FieldKind::PADS:
      return "low, high, interior";
    case FieldKind::DIM_LABELS:
      return "dimension labels";
    case FieldKind::PRECISIONS:
      return "list of precisions";
    case FieldKind::GROUPS:
      return "replica groups";
    case FieldKind::PAIRS:
      return "list of pairs";
    case FieldKind::SHAPE:
      return "shape";
    case FieldKind::SHAPES:
      return "list of shapes";
    case FieldKind::LITERAL:
      return "literal";
    case FieldKind::ALIASING:
      return "aliases";
    case FieldKind::LISTS:
      return "list of lists";
  }
  return "?";
}

std::string_view regions_text(Regions regions) {
  switch (regions) {
    case Regions::NONE:
      return "";
    case Regions::TO_APPLY:
      return "to_apply";
    case Regions::CONDITION_BODY:
      return "condition, body";
    case Regions::SELECT_SCATTER:
      return "select, scatter";
    case Regions::BRANCHES:
      return "branches";
    case Regions::CALLS:
      return "calls";
    case Regions::CUSTOM:
      return "any";
  }
  return "?";
}

std::string_view record_name(Record record) {
  switch (record) {
    case Record::None:
      return "";
#define COLLET_RECORD(Name, name) \
  case Record::Name:              \
    return #Name;
#include <collet/attributes.def>
  }
  return "?";
}

std::string operands_text(const OpInfo& info) {
  const int64_t least = info.min_operands, most = info.max_operands;
  if (least == most) return concat(least);
  return most < 0 ? concat(least, " or more") : concat(least, " to ", most);
}

std::string bound_text(const OpInfo& info) {
  if (info.ulp == 0) return "exact";
  return info.ulp < 0 ? "by its structure" : concat(static_cast<int64_t>(info.ulp), " ULP");
}

// The anchor of a record's heading. It has a prefix so that it differs from the anchors of other headings.
std::string record_id(Record record) {
  std::string id = "record_";
  for (char c : record_name(record)) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && id.back() != '_') id += '_';
    id += static_cast<char>(upper ? c - 'A' + 'a' : c);
  }
  return id;
}

std::string record_link(Record record) {
  if (record == Record::None) return "";
  return concat("[", record_name(record), "](#", record_id(record), ")");
}

template <size_t n>
std::string names_of(const std::array<Op, n>& ops) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += concat(i == 0 ? "" : i + 1 == n ? " and " : ", ", op_info(ops[i]).text);
  return out;
}

void append_family(std::string& out, const FamilyText& family, std::set<Record>& records) {
  out += concat("\n## ", family.title, "\n\n", family.rules);
  if (!family.edges.empty()) out += concat("\n\n", family.edges);
  out += concat(
      "\n\n| op | class | operands | element types | attributes | computations | f32 error | since |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (int id = 1; id <= kLastOp; ++id) {
    const OpInfo& info = op_info(static_cast<Op>(id));
    if (info.family != family.family) continue;
    records.insert(info.record);
    out += concat("| ", info.text, " | ", kClasses[static_cast<size_t>(info.op_class)].name, " | ", operands_text(info),
                  " | ", type_set_text(info.types), " | ", record_link(info.record), " | ", regions_text(info.regions),
                  " | ", bound_text(info), " | ", static_cast<int64_t>(info.since), " |\n");
  }
}

void append_record(std::string& out, Record record) {
  out += concat("\n### ", record_name(record), " {#", record_id(record),
                "}\n\n| field | in HLO text | kind | presence | crosses the ABI boundary | since |\n",
                "|---|---|---|---|---|---|\n");
  for (const FieldInfo& field : record_fields(record)) {
    std::string kind(kind_text(field.kind));
    for (size_t i = 0; i < field.values.size(); ++i)
      kind += concat(i ? ", " : " ", field.values[i].text.empty() ? "(unset)" : field.values[i].text);
    out += concat("| ", field.name, " | ", field.text, " | ", kind, " | ", field.required ? "required" : "optional",
                  " | ", field.crosses ? "yes" : "no", " | ", static_cast<int64_t>(field.since), " |\n");
  }
}

}  // namespace

bool expands_by_integers(Op op) {
  return std::find(kWithoutIntegers.begin(), kWithoutIntegers.end(), op) == kWithoutIntegers.end();
}

bool expands_by_wider_integers(Op op) {
  return std::find(kWithWiderIntegers.begin(), kWithWiderIntegers.end(), op) != kWithWiderIntegers.end();
}

std::string op_reference_markdown() {
  std::string out =
      "# Ops\n\nMade from the op table, `sdk/include/collet/ops.def`, by `collet info --ops --format md`; do not edit. "
      "A "
      "result's error is given for f32 against the exact value rounded once.\n\n| class | ops | what it means "
      "|\n|---|---|---|\n";
  for (size_t c = 0; c < kClasses.size(); ++c) {
    int64_t count = 0;
    for (int id = 1; id <= kLastOp; ++id) count += static_cast<size_t>(op_info(static_cast<Op>(id)).op_class) == c;
    out += concat("| ", kClasses[c].name, " | ", count, " | ", kClasses[c].meaning, " |\n");
  }
  out += concat(
      "\nExpansions of exact and math ops of floats compute with u32 and s32, or the integers of the float's width "
      "(u32 "
      "and s32 for the functions of narrower floats), and bitcast-convert between them: a backend that declares these "
      "types, and has kernels for and, or, xor, shifts, add and bitcast-convert of them, gets the ops without kernels "
      "of "
      "their own; one without them gets no more than ",
      names_of(kWithoutIntegers), ". ", names_of(kWithWiderIntegers), " of f32 also need u64.\n");
  std::set<Record> records;
  for (const FamilyText& family : kFamilies) append_family(out, family, records);
  records.erase(Record::None);
  out +=
      "\n## Attributes\n\nOptional fields are zero, false, empty or the enumeration's first value where they are left "
      "out.\n";
  for (Record record : records) append_record(out, record);
  return out;
}

}  // namespace collet::hlo
