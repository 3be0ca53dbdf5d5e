// SPDX-License-Identifier: Apache-2.0
#include "hlo/ops/library_calls.h"

#include <algorithm>

#include "hlo/ops/constraint.h"
#include "hlo/ops/rules.h"

namespace collet::hlo {
namespace {

/// Returns `shape` with its last `drop` dimensions replaced by `last`.
Shape with_last(const Shape& shape, size_t drop, std::initializer_list<int64_t> last, Type type) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end() - static_cast<ptrdiff_t>(drop));
  dims.insert(dims.end(), last);
  return Shape::array(type, dims);
}

class Call {
 public:
  Call(std::string_view target, std::span<const Shape* const> operands, const Shape& result)
      : target_(target), operands_(operands), result_(result) {}

  Status top_k() const {
    if (operands_.size() != 1 || !operands_[0]->is_array() || operands_[0]->rank() == 0)
      return wrong("takes one array with dimensions");
    const Shape& operand = *operands_[0];
    if (is_complex(operand.type())) return wrong("takes no complex numbers, which have no order");
    const bool ranked = result_.is_tuple() && result_.elements().size() == 2 && result_.element(0).rank() > 0;
    const int64_t k = ranked ? std::min(result_.element(0).dims().back(), operand.dims().back()) : 0;
    return gives(Shape::tuple({with_last(operand, 1, {k}, operand.type()), with_last(operand, 1, {k}, Type::S32)}));
  }

  Status qr() const {
    COLLET_TRY(takes_matrices(1));
    const Shape& a = *operands_[0];
    const int64_t steps = std::min(a.dim(a.rank() - 2), a.dim(a.rank() - 1));
    return gives(Shape::tuple({a.without_layout(), with_last(a, 2, {steps}, a.type())}));
  }

  Status reflectors() const {
    COLLET_TRY(takes_matrices(2));
    const Shape &a = *operands_[0], &factors = *operands_[1];
    const bool ranked = factors.is_array() && factors.rank() > 0;
    if (!ranked || !factors.compatible(with_last(a, 2, {factors.dims().back()}, a.type())))
      return wrong("of ", a, " takes a factor for each reflection, not ", factors);
    return gives(a.without_layout());
  }

  Status eigh() const {
    COLLET_TRY(takes_matrices(1));
    const Shape& a = *operands_[0];
    const int64_t n = a.dim(a.rank() - 1);
    if (a.dim(a.rank() - 2) != n) return wrong("takes square matrices, not ", a);
    return gives(Shape::tuple({a.without_layout(), with_last(a, 2, {n}, real_type(a.type()))}));
  }

 private:
  template <typename... Parts>
  Status wrong(const Parts&... parts) const {
    return invalid_argument(concat("'", target_, "' ", parts...));
  }
  Status takes_matrices(size_t count) const {
    if (operands_.size() != count)
      return wrong("takes ", count, count == 1 ? " operand" : " operands", ", but has ", operands_.size());
    const Shape& a = *operands_[0];
    if (a.is_array() && in_type_set(TypeSet::FLOAT_COMPLEX, a.type()) && a.rank() >= 2) return ok_status();
    return wrong("takes matrices of float or complex numbers, not ", a);
  }
  Status gives(const Shape& result) const {
    if (result_.compatible(result)) return ok_status();
    return wrong("of ", *operands_[0], " gives ", result, ", not ", result_);
  }

  std::string_view target_;
  std::span<const Shape* const> operands_;
  const Shape& result_;
};

struct Target {
  std::string_view name;
  Status (Call::*check)() const;
};
constexpr Target kTargets[] = {{"TopK", &Call::top_k},
                               {"Qr", &Call::qr},
                               {"ProductOfElementaryHouseholderReflectors", &Call::reflectors},
                               {"Eigh", &Call::eigh}};

const Target* find_target(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& t) { return t.name == name; });
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace

bool is_library_target(std::string_view target) {
  return find_target(target) != nullptr;
}

Status check_library_call(std::string_view target, std::span<const Shape* const> operands, const Shape& result) {
  const Target* const found = find_target(target);
  return found ? (Call(target, operands, result).*found->check)() : ok_status();
}

}  // namespace collet::hlo
