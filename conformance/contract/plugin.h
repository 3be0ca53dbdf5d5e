// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/backend.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/base/status.h"

namespace collet::conformance {

/// A backend library, loaded without the SDK's runtime and never unloaded. A process may have one Plugin at a time, of a library
/// that the runtime has not loaded, because the library's entry function may be called only once per load.
class Plugin {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;
  /// `options` are passed to each open of the backend.
  static Expected<std::unique_ptr<Plugin>> load(const std::string& path, Options options);

  /// A copy of the table; functions that the library's version lacks are null.
  const collet_backend& table() const { return table_; }
  const collet_backend* original() const { return original_; }
  const Options& options() const { return options_; }
  bool computes() const { return table_.supports && table_.compile && table_.execute && table_.release; }

 private:
  Plugin() = default;
  collet_backend table_{};
  const collet_backend* original_ = nullptr;
  Options options_;
};

}  // namespace collet::conformance
