/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_LATER_HPP
#define COLLET_KERNEL_LATER_HPP

/** \file
 * Makes kernels run after Kernel::run has returned, on a thread or queue of the device. Included by kernel_backend.hpp.
 *
 *     for (Kernel& row : backend.kernels) {
 *       row = later(std::move(row), [](Device& device, const Op&, std::function<void()> work) {
 *         static_cast<Mine&>(device).submit(std::move(work));
 *       });
 *     }
 */

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernel_describe.hpp"

namespace collet {
namespace kernel {

/** An Op that may be kept after the function that received it has returned: its arrays, and the values of scalars that
 * the host knows, are copied. It is cheap to copy. Valid until the work of the execution has ended, as are Op::program()
 * and the state. */
class OwnedOp {
 public:
  /** Copies `op`, which is that of Kernel::run or Packing::make. */
  explicit OwnedOp(const Op& op) {
    auto kept = std::make_shared<Kept>();
    const uint32_t count = op.operand_count() + op.result_count();
    kept->program = op.program();
    kept->op = &op.raw();
    kept->context = op.context();
    kept->arrays.assign(op.arrays(), op.arrays() + count);
    kept->values.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      Array& array = kept->arrays[i];
      // Scalars belong to the launch, so they are copied. Larger data are constants of the program, which stay valid.
      if (!array.host || array.bytes > sizeof(Value)) continue;
      std::memcpy(kept->values[i].bytes, array.host, static_cast<size_t>(array.bytes));
      array.host = kept->values[i].bytes;
    }
    kept_ = std::move(kept);
  }
  /** Returns the op: a view that is valid as long as this object or a copy of it. */
  Op op() const { return Op(kept_->program, kept_->op, kept_->arrays.data(), kept_->context); }

 private:
  struct Value {
    alignas(16) char bytes[16];
  };
  struct Kept {
    const collet_program* program = nullptr;
    const collet_op* op = nullptr;
    OpContext context;
    std::vector<Array> arrays;
    std::vector<Value> values;
  };
  std::shared_ptr<const Kept> kept_;
};

/** Queues `work` after all work that was started on `device`, and returns. `op` is for records, and valid until this
 * returns. Errors that `work` throws are thrown by Device::mark or wait. */
using Submit = std::function<void(Device& device, const Op& op, std::function<void()> work)>;

/** Makes a row run later: its `run` and its `packing` are passed to `submit`. The rest of the row is unchanged. On the
 * device's own thread `run` must not wait for that thread, so it must not call Device::read, unless that handles the
 * case. The rows of kernel_rows.hpp call only their `address`. */
inline Kernel later(Kernel row, Submit submit) {
  if (row.run) {
    row.run = [run = std::move(row.run), submit](Device& device, const Op& op) {
      submit(device, op, [&device, run, mine = OwnedOp(op)] { run(device, mine.op()); });
    };
  }
  if (row.packing.make) {
    row.packing.make = [make = std::move(row.packing.make), submit](Device& device, const Op& op, const Array& packed) {
      submit(device, op, [&device, make, mine = OwnedOp(op), packed] { make(device, mine.op(), packed); });
    };
  }
  return row;
}

}  // namespace kernel
}  // namespace collet

#endif
