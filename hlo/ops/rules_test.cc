// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/rules.h"

#include <collet/program.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "hlo/ops/constraint.h"

namespace collet::hlo {
namespace {

using ::testing::HasSubstr;

std::vector<Op> all_ops() {
  std::vector<Op> ops;
  for (int i = 1; i <= kLastOp; ++i) ops.push_back(static_cast<Op>(i));
  return ops;
}

std::string op_test_name(const ::testing::TestParamInfo<Op>& info) {
  std::string name(op_info(info.param).text);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

// Returns a type that is not in `set`.
Type outsider(TypeSet set) {
  for (Type t : {Type::PRED, Type::S32, Type::F32, Type::C64})
    if (!in_type_set(set, t)) return t;
  return Type::Invalid;
}

class RowTest : public ::testing::TestWithParam<Op> {
 protected:
  const OpInfo& info() const { return op_info(GetParam()); }
  Expected<Shape> infer(const std::vector<Shape>& operands, const std::vector<CompId>& called = {},
                        const Shape* declared = nullptr) {
    std::vector<const Shape*> pointers;
    for (const Shape& s : operands) pointers.push_back(&s);
    const void* attrs = info().record == Record::None ? nullptr : make_record(info().record, module_.arena());
    return infer_shape({module_, GetParam(), pointers, attrs, called, declared});
  }
  std::string error(const std::vector<Shape>& operands, const std::vector<CompId>& called = {}) {
    return infer(operands, called).status().message();
  }
  // Returns as many computations as the op calls; none has a root.
  std::vector<CompId> callees() {
    switch (info().regions) {
      case Regions::NONE:
      case Regions::CUSTOM:
        return {};
      case Regions::CONDITION_BODY:
      case Regions::SELECT_SCATTER:
        return {module_.add_computation("a"), module_.add_computation("b")};
      default:
        return {module_.add_computation("a")};
    }
  }
  Module module_;
};

TEST_P(RowTest, TooFewOperandsAreRefused) {
  if (info().min_operands == 0) return;
  const std::vector<Shape> operands(static_cast<size_t>(info().min_operands - 1), Shape::array(Type::F32, {2}));
  EXPECT_THAT(error(operands), HasSubstr(std::string(info().text) + ": takes "));
}

TEST_P(RowTest, TooManyOperandsAreRefused) {
  if (info().max_operands < 0) return;
  const std::vector<Shape> operands(static_cast<size_t>(info().max_operands + 1), Shape::array(Type::F32, {2}));
  EXPECT_THAT(error(operands), HasSubstr(std::string(info().text) + ": takes "));
}

TEST_P(RowTest, WrongElementTypeIsRefused) {
  if (outsider(info().types) == Type::Invalid || info().min_operands == 0) return;
  const std::vector<Shape> operands(static_cast<size_t>(info().min_operands),
                                    Shape::array(outsider(info().types), {2}));
  EXPECT_THAT(error(operands, callees()), HasSubstr(std::string(info().text) + ": operand 0 must be of " +
                                                    std::string(type_set_text(info().types))));
}

TEST_P(RowTest, MissingOrNeedlessComputationsAreRefused) {
  if (info().regions == Regions::CUSTOM) return;
  const std::vector<Shape> operands(static_cast<size_t>(info().min_operands), Shape::array(Type::F32, {2}));
  std::vector<CompId> called = callees();
  called.push_back(module_.add_computation("more"));
  if (info().regions == Regions::BRANCHES) called.clear();
  EXPECT_FALSE(infer(operands, called).ok());
}

TEST_P(RowTest, MissingAttributesAreRefused) {
  if (info().record == Record::None) return;
  EXPECT_THAT(infer_shape({module_, GetParam(), {}, nullptr, {}}).status().message(), HasSubstr("has no attributes"));
}

// Random attributes and shapes: inference must return an answer or an error, and no shape with a negative size.
class Hostile {
 public:
  explicit Hostile(uint32_t seed) : random_(seed) {}

  int64_t number() {
    static constexpr int64_t kEdges[] = {0,      1, 2, 3, -1, 4, 7, INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX / 2,
                                         1 << 20};
    const uint64_t choice = random_() % 20;
    return choice < std::size(kEdges) ? kEdges[choice] : static_cast<int64_t>(random_() % 5);
  }
  size_t count() { return random_() % 5; }

  Dims dims(Module& m) {
    std::vector<int64_t> out(count());
    for (int64_t& n : out) n = number();
    return m.dims(out);
  }

  Shape shape(int depth = 0) {
    const uint64_t choice = random_() % 16;
    if (choice == 0) return Shape::token();
    if (choice == 1 && depth < 2) {
      std::vector<Shape> elements(count());
      for (Shape& s : elements) s = shape(depth + 1);
      return Shape::tuple(std::move(elements));
    }
    static constexpr Type kTypes[] = {Type::F32,  Type::F32, Type::S32, Type::PRED,
                                      Type::BF16, Type::C64, Type::U8,  Type::U64};
    static constexpr int64_t kSizes[] = {0, 1, 2, 2, 3, 4, 6, kUnbounded, INT64_MAX, int64_t{1} << 40};
    std::vector<int64_t> sizes(random_() % 4);
    std::vector<bool> dynamic(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = kSizes[random_() % std::size(kSizes)];
      dynamic[i] = sizes[i] == kUnbounded || random_() % 5 == 0;
    }
    return Shape::array(kTypes[random_() % std::size(kTypes)], sizes, dynamic);
  }

  void* record(Module& m, Record record) {
    auto* bytes = static_cast<char*>(make_record(record, m.arena()));
    for (const FieldInfo& field : record_fields(record)) fill(m, field.kind, bytes + field.offset);
    return bytes;
  }

  CompId computation(Module& m) {
    const CompId c = m.add_computation("c" + std::to_string(random_()));
    const Shape scalar = Shape::scalar(random_() % 2 ? Type::F32 : Type::S32);
    std::vector<InstrId> parameters;
    for (size_t i = 0, n = count(); i < n; ++i)
      parameters.push_back(m.append_parameter(c, static_cast<int64_t>(i), random_() % 3 ? scalar : shape()));
    switch (random_() % 4) {
      case 0:
        return c;  // a computation without a root
      case 1:
        m[c].root = m.append(c, Op::TUPLE, Shape::tuple({}), {});
        break;
      default:
        m[c].root = parameters.empty() ? m.append_constant(c, Literal::scalar(Type::PRED, 1)) : parameters[0];
    }
    return c;
  }

  size_t pick(size_t n) { return random_() % n; }

 private:
  template <typename T>
  void put(void* at, const T& value) {
    *static_cast<T*>(at) = value;
  }

  void fill(Module& m, FieldKind kind, void* at) {
    switch (kind) {
      case FieldKind::I64:
      case FieldKind::DIM:
        return put(at, number());
      case FieldKind::U32:
      case FieldKind::ENUM:
        return put(at, static_cast<uint32_t>(random_() % 8));
      case FieldKind::BOOL:
      case FieldKind::NOT_BOOL:
        return put(at, random_() % 2 == 0);
      case FieldKind::F32:
        return put(at, 1.0f);
      case FieldKind::DIMS:
      case FieldKind::PRECISIONS:
      case FieldKind::PAIRS:
        return put(at, dims(m));
      case FieldKind::WINDOW:
        return put(at, Window{dims(m), dims(m), dims(m), dims(m), dims(m), dims(m), dims(m)});
      case FieldKind::SLICES:
        return put(at, SliceRanges{dims(m), dims(m), dims(m)});
      case FieldKind::PADS:
        return put(at, Padding{dims(m), dims(m), dims(m)});
      case FieldKind::DIM_LABELS:
        return put(
            at, DimLabels{number(), number(), number(), number(), number(), number(), dims(m), dims(m), dims(m), {}});
      case FieldKind::GROUPS: {
        Groups groups;
        std::vector<Dims> lists(count());
        for (Dims& list : lists) list = dims(m);
        groups.groups = m.arena().list(lists);
        return put(at, groups);
      }
      case FieldKind::LISTS: {
        std::vector<Dims> lists(count());
        for (Dims& list : lists) list = dims(m);
        return put(at, m.arena().list(lists));
      }
      case FieldKind::ALIASING: {
        std::vector<AliasEntry> entries(count());
        for (AliasEntry& e : entries) e = {dims(m), number(), dims(m)};
        return put(at, m.arena().list(entries));
      }
      case FieldKind::SHAPES: {
        std::vector<const Shape*> shapes(count());
        for (const Shape*& s : shapes) s = m.keep(shape());
        return put(at, m.arena().list(shapes));
      }
      case FieldKind::SHAPE:
        return put(at, m.keep(shape()));
      case FieldKind::STRING:
      case FieldKind::LITERAL:
        return;
    }
  }

  std::mt19937_64 random_;
};

void expect_sound(const Shape& shape) {
  ASSERT_TRUE(shape.valid());
  for (int64_t d : shape.dims()) EXPECT_TRUE(d >= 0 || d == kUnbounded) << shape.to_string();
  for (const Shape& element : shape.elements()) expect_sound(element);
}

TEST_P(RowTest, HostileInputNeverCrashes) {
  Hostile hostile(static_cast<uint32_t>(GetParam()));
  for (int round = 0; round < 3000; ++round) {
    Module m;
    const CompId c = m.add_computation("main");
    std::vector<InstrId> operands;
    const size_t least = static_cast<size_t>(info().min_operands);
    for (size_t i = 0, n = least + (info().max_operands < 0 ? hostile.count() : 0); i < n; ++i)
      operands.push_back(i && hostile.pick(2) ? operands[0]
                                              : m.append_parameter(c, static_cast<int64_t>(i), hostile.shape()));
    std::vector<CompId> called;
    if (info().regions != Regions::NONE)
      for (size_t i = 0, n = 1 + hostile.pick(2); i < n; ++i) called.push_back(hostile.computation(m));
    const void* attrs = info().record == Record::None ? nullptr : hostile.record(m, info().record);
    const InstrId id = m.append(c, GetParam(), hostile.shape(), operands, attrs, called);
    const Expected<Shape> inferred = infer_shape(m, m[id]);
    if (inferred.ok()) {
      expect_sound(*inferred);
      m[id].shape = *inferred;
    }
    verify_instruction(m, m[id]).ok();
    combine_kind(m, c);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, RowTest, ::testing::ValuesIn(all_ops()), op_test_name);

TEST(Rules, UnknownOpsAreRefused) {
  Module m;
  EXPECT_FALSE(infer_shape({m, Op::INVALID, {}, nullptr, {}}).ok());
  EXPECT_FALSE(infer_shape({m, static_cast<Op>(200), {}, nullptr, {}}).ok());
}

TEST(Rules, AppendInferredGivesTheShape) {
  Module m;
  const CompId c = m.add_computation("main");
  const InstrId x = m.append_parameter(c, 0, Shape::array(Type::F32, {2, 3}));
  const InstrId y = m.append_parameter(c, 1, Shape::array(Type::F32, {3, 4}));
  auto* dot = m.make<DotAttrs>();
  dot->lhs_contracting = m.dims({1});
  dot->rhs_contracting = m.dims({0});
  const InstrId operands[] = {x, y};
  const Expected<InstrId> z = append_inferred(m, c, Op::DOT, operands, dot);
  ASSERT_TRUE(z.ok()) << z.status().message();
  EXPECT_EQ(m[*z].shape.to_string(), "f32[2,4]");
  const Expected<InstrId> sum = append_inferred(m, c, Op::ADD, operands);
  EXPECT_THAT(sum.status().message(), HasSubstr("add C1: operand shapes differ: f32[2,3] and f32[3,4]"));
}

// Modules that cannot be read from text, because the parser refuses them before inference.
class BuiltTest : public ::testing::Test {
 protected:
  std::string error(Op op, const std::vector<Shape>& operands, const void* attrs = nullptr) {
    std::vector<const Shape*> pointers;
    for (const Shape& s : operands) pointers.push_back(&s);
    std::vector<CompId> called;
    if (op_info(op).regions != Regions::NONE && op_info(op).regions != Regions::CUSTOM) called.push_back(add_);
    if (!attrs && op_info(op).record != Record::None) attrs = make_record(op_info(op).record, module_.arena());
    return infer_shape({module_, op, pointers, attrs, called}).status().message();
  }
  Module module_;
  CompId add_ = module_.add_computation("add");
  const Shape vector_ = Shape::array(Type::F32, {4});
  const Shape scalar_ = Shape::scalar(Type::F32);
};

TEST_F(BuiltTest, OperandsOutOfPairsAreRefused) {
  EXPECT_THAT(error(Op::REDUCE, {vector_, scalar_, scalar_}), HasSubstr("reduce C3: must have an initial value"));
  EXPECT_THAT(error(Op::REDUCE_WINDOW, {vector_, scalar_, scalar_}), HasSubstr("reduce-window C1"));
  const Shape index = Shape::array(Type::S32, {2});
  EXPECT_THAT(error(Op::SCATTER, {vector_, index, vector_, vector_}), HasSubstr("scatter C5"));
}

TEST_F(BuiltTest, WrongNumbersOfStartsAreRefused) {
  const Shape matrix = Shape::array(Type::F32, {4, 3}), start = Shape::scalar(Type::S32);
  EXPECT_THAT(error(Op::DYNAMIC_SLICE, {matrix, start}), HasSubstr("dynamic-slice C2: there must be 2 start indices"));
  EXPECT_THAT(error(Op::DYNAMIC_UPDATE_SLICE, {matrix, matrix, start}), HasSubstr("dynamic-update-slice C4"));
}

TEST_F(BuiltTest, NegativeInteriorPaddingIsRefused) {
  auto* pad = module_.make<PadAttrs>();
  pad->padding = {module_.dims({0}), module_.dims({0}), module_.dims({-1})};
  EXPECT_THAT(error(Op::PAD, {vector_, scalar_}, pad), HasSubstr("pad C3: interior padding -1"));
}

TEST_F(BuiltTest, BranchIndicesAreScalars) {
  EXPECT_THAT(error(Op::CONDITIONAL, {vector_, vector_}), HasSubstr("the branch index must be pred[] or s32[]"));
}

TEST_F(BuiltTest, OperandLayoutConstraintsFitTheOperands) {
  const CompId c = module_.add_computation("main");
  const InstrId operands[] = {module_.append_parameter(c, 0, vector_)};
  auto* attrs = module_.make<CustomCallAttrs>();
  const Shape* shapes[] = {&scalar_};
  attrs->operand_layouts = module_.arena().list<const Shape* const>(shapes);
  const InstrId call = module_.append(c, Op::CUSTOM_CALL, vector_, operands, attrs);
  EXPECT_THAT(verify_instruction(module_, module_[call]).message(), HasSubstr("says that operand 0 is f32[]"));
}

uint32_t kind_of_binary(Op op, bool swapped, size_t parameters = 2, Direction direction = Direction::LT) {
  Module m;
  const CompId c = m.add_computation("f");
  std::vector<InstrId> p;
  for (size_t i = 0; i < parameters; ++i)
    p.push_back(m.append_parameter(c, static_cast<int64_t>(i), Shape::scalar(Type::F32)));
  const InstrId operands[] = {p[swapped ? 1 : 0], p[swapped ? 0 : 1]};
  const void* attrs = nullptr;
  if (op == Op::COMPARE) {
    auto* compare = m.make<CompareAttrs>();
    compare->direction = direction;
    attrs = compare;
  }
  m[c].root = m.append(c, op, Shape::scalar(op == Op::COMPARE ? Type::PRED : Type::F32), operands, attrs);
  return combine_kind(m, c);
}

TEST(CombineKind, NamesWhatAComputationDoes) {
  EXPECT_EQ(kind_of_binary(Op::ADD, false), COLLET_COMBINE_ADD);
  EXPECT_EQ(kind_of_binary(Op::MAXIMUM, true), COLLET_COMBINE_MAXIMUM);
  EXPECT_EQ(kind_of_binary(Op::SUBTRACT, false), COLLET_COMBINE_OTHER);
  EXPECT_EQ(kind_of_binary(Op::ADD, false, 4), COLLET_COMBINE_OTHER);
  EXPECT_EQ(kind_of_binary(Op::COMPARE, false, 4), COLLET_COMBINE_LESS);
  EXPECT_EQ(kind_of_binary(Op::COMPARE, true, 2), COLLET_COMBINE_GREATER);
  EXPECT_EQ(kind_of_binary(Op::COMPARE, false, 2, Direction::GE), COLLET_COMBINE_OTHER);
}

TEST(CombineKind, KeepsOrAssigns) {
  for (int64_t root : {0, 1}) {
    Module m;
    const CompId c = m.add_computation("f");
    for (int64_t i = 0; i < 2; ++i) {
      const InstrId p = m.append_parameter(c, i, Shape::scalar(Type::F32));
      if (i == root) m[c].root = p;
    }
    EXPECT_EQ(combine_kind(m, c), root == 0 ? COLLET_COMBINE_FIRST : COLLET_COMBINE_SECOND);
  }
  Module m;
  EXPECT_EQ(combine_kind(m, CompId::None), COLLET_COMBINE_OTHER);
}

TEST(WiderType, PrefersRangeThenPrecision) {
  EXPECT_EQ(wider_type(Type::BF16, Type::F16), Type::BF16);
  EXPECT_EQ(wider_type(Type::BF16, Type::F32), Type::F32);
  EXPECT_EQ(wider_type(Type::F64, Type::F32), Type::F64);
  EXPECT_EQ(wider_type(Type::S32, Type::S32), Type::S32);
  EXPECT_EQ(wider_type(Type::F8E4M3FN, Type::F8E5M2), Type::F8E5M2);
}

}  // namespace
}  // namespace collet::hlo
