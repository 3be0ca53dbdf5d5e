// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "hlo/base/diagnostics.h"
#include "hlo/base/status.h"
#include "hlo/ir/module.h"
#include "sdk/runtime/memory/array_type.h"

namespace collet::runtime {

/// Types, shardings and layouts of an entry, per leaf; empty texts if the program does not state them.
struct Signature {
  std::vector<const ArrayType*> parameters, results;
  std::vector<std::string> parameter_shardings, result_shardings;
  std::vector<std::string> parameter_layouts, result_layouts;  ///< such as "{0,1}"; also empty for row-major layouts
  std::vector<std::vector<bool>> dynamic_results;              ///< by dimension: true if the data decide its size
};
Expected<Signature> signature_of(const hlo::Module& module);

/// A program as it was read. Immutable; reference-counted, begins with one reference.
class ProgramModule {
 public:
  /// Creates a program from a module that has an entry.
  static Expected<ProgramModule*> make(std::unique_ptr<hlo::Module> module);

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  const hlo::Module& module() const { return *module_; }
  const std::vector<const ArrayType*>& parameters() const { return signature_.parameters; }
  const std::vector<const ArrayType*>& results() const { return signature_.results; }
  const std::string& name() const { return name_; }
  /// Per leaf; empty if the program states none.
  const std::vector<std::string>& parameter_shardings() const { return signature_.parameter_shardings; }
  const std::vector<std::string>& result_shardings() const { return signature_.result_shardings; }
  const std::vector<std::string>& parameter_layouts() const { return signature_.parameter_layouts; }
  const std::vector<std::string>& result_layouts() const { return signature_.result_layouts; }
  /// True if the data decide the size of a dimension of a result.
  bool is_dynamic(size_t result, size_t dimension) const {
    const auto& all = signature_.dynamic_results;
    return result < all.size() && dimension < all[result].size() && all[result][dimension];
  }

 private:
  ProgramModule() = default;
  ~ProgramModule() = default;

  std::atomic<uint32_t> refs_{1};
  std::unique_ptr<hlo::Module> module_;
  std::string name_;
  Signature signature_;
};

/// Reads a program in any format. All errors with their positions are in `messages`, the first one is in the status.
Expected<ProgramModule*> read_module(std::string_view bytes, const collet_read_options& options, std::string& messages);
Expected<std::string> write_module(const hlo::Module& module, uint32_t format);

}  // namespace collet::runtime
