// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "hlo/ops/rules.h"
#include "hlo/passes/rewriter.h"
#include "hlo/testing/reduce_module.h"

namespace collet::hlo::testing {
namespace {

class Resizer {
 public:
  Resizer(Module& module, int64_t from, int64_t to, bool multiples)
      : module_(module), from_(from), to_(to), multiples_(multiples) {}

  bool run() {
    for (CompId c : post_order(module_))
      for (InstrId id : module_[c].order)
        if (!visit(module_[id])) return false;
    module_.header().has_entry_layout = false;
    return changed_;
  }

 private:
  int64_t map(int64_t n) const {
    if (n == from_) return to_;
    return multiples_ && n > from_ && n % from_ == 0 ? n / from_ * to_ : n;
  }

  Shape map(const Shape& shape) const {
    if (shape.is_tuple()) {
      std::vector<Shape> elements;
      for (const Shape& element : shape.elements()) elements.push_back(map(element));
      return Shape::tuple(std::move(elements));
    }
    if (!shape.is_array()) return shape;
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
    for (int64_t& d : dims) d = map(d);
    return std::equal(dims.begin(), dims.end(), shape.dims().begin()) ? shape : shape.with_dims(dims);
  }

  bool visit(Instruction& instr) {
    const Shape declared = map(instr.shape);
    changed_ |= !(declared == instr.shape);
    if (instr.op == Op::PARAMETER) {
      instr.shape = declared;
      return true;
    }
    if (instr.op == Op::CONSTANT) return declared == instr.shape || crop(instr, declared);
    map_attributes(instr);
    instr.shape = declared;
    Expected<Shape> inferred = infer_shape(module_, instr);
    if (!inferred.ok()) return false;
    instr.shape = *std::move(inferred);
    return true;
  }

  // Replaces a constant by its leading corner of the new shape.
  bool crop(Instruction& instr, const Shape& shape) {
    const Literal& old = module_.literal(instr);
    if (!shape.is_array() || shape.has_dynamic()) return false;
    Literal value = Literal::zeros(shape.without_layout());
    const int64_t width = old.element_count() == 0 ? 0 : old.byte_size() / old.element_count();
    uint8_t* out = value.mutable_bytes();
    std::vector<int64_t> at(static_cast<size_t>(shape.rank()));
    for (int64_t i = 0; i < shape.element_count(); ++i) {
      int64_t rest = i, source = 0;
      for (int d = shape.rank(); d-- > 0;) {
        at[static_cast<size_t>(d)] = rest % shape.dim(d);
        rest /= shape.dim(d);
      }
      for (int d = 0; d < shape.rank(); ++d) source = source * old.shape().dim(d) + at[static_cast<size_t>(d)];
      std::copy_n(old.bytes() + source * width, width, out + i * width);
    }
    instr.attrs = module_.constant_attrs(std::move(value));
    instr.shape = shape;
    return true;
  }

  Dims map(Dims dims) {
    std::vector<int64_t> out(dims.begin(), dims.end());
    for (int64_t& d : out) d = map(d);
    return module_.dims(out);
  }

  template <typename T>
  T* copy(Instruction& instr) {
    T* attrs = module_.arena().make<T>(instr.as<T>());
    instr.attrs = attrs;
    return attrs;
  }

  // Replaces sizes in attributes.
  void map_attributes(Instruction& instr) {
    switch (op_info(instr.op).record) {
      case Record::DynamicSlice: {
        auto* attrs = copy<DynamicSliceAttrs>(instr);
        attrs->sizes = map(attrs->sizes);
        return;
      }
      case Record::Gather: {
        auto* attrs = copy<GatherAttrs>(instr);
        attrs->slice_sizes = map(attrs->slice_sizes);
        return;
      }
      case Record::Fft: {
        auto* attrs = copy<FftAttrs>(instr);
        attrs->length = map(attrs->length);
        return;
      }
      case Record::Slice: {
        auto* attrs = copy<SliceAttrs>(instr);
        clip(attrs->slice, module_[instr.operand(0)].shape);
        return;
      }
      case Record::Window: {
        auto* attrs = copy<WindowAttrs>(instr);
        attrs->window.size = map(attrs->window.size);
        return;
      }
      case Record::Convolution: {
        auto* attrs = copy<ConvolutionAttrs>(instr);
        attrs->window.size = map(attrs->window.size);
        attrs->feature_groups = map(attrs->feature_groups);
        attrs->batch_groups = map(attrs->batch_groups);
        return;
      }
      case Record::TopK: {
        auto* attrs = copy<TopKAttrs>(instr);
        attrs->k = map(attrs->k);
        return;
      }
      default:
        return;
    }
  }

  void clip(SliceRanges& slice, const Shape& of) {
    std::vector<int64_t> start(slice.start.begin(), slice.start.end()), limit(slice.limit.begin(), slice.limit.end());
    for (size_t i = 0; i < limit.size() && i < static_cast<size_t>(of.rank()); ++i) {
      limit[i] = std::min(map(limit[i]), of.dim(static_cast<int>(i)));
      start[i] = std::min(map(start[i]), limit[i]);
    }
    slice.start = module_.dims(start);
    slice.limit = module_.dims(limit);
  }

  Module& module_;
  const int64_t from_, to_;
  const bool multiples_;
  bool changed_ = false;
};

}  // namespace

bool resize_dimensions(Module& module, int64_t from, int64_t to, bool multiples) {
  return Resizer(module, from, to, multiples).run();
}

}  // namespace collet::hlo::testing
