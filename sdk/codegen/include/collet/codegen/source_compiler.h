// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/status.h>

#include <functional>
#include <memory>
#include <string>

/// \file
/// Calls the compiler of a vendor, a command or a function, for source text that compile_source has made.

namespace collet::codegen {

/// How the compiler of a vendor is called. Calls may run at the same time.
struct SourceCompiler {
  /// A command line, split at spaces without a shell. {in} stands for the path of the text, a file that ends in `suffix`, {out} for that of the
  /// file to be made. What it writes is shown if it fails. If empty, `compile` is called.
  std::string command;
  std::string suffix = ".c";
  /// Returns the code of a text, or throws; what the exception says is shown.
  std::function<std::string(const std::string& text)> compile;
  /// Stated by the vendor: anything besides the command that the code depends on. It is part of the keys of the cache.
  std::string version;
  /// Seconds after which the command is stopped, with all processes that it has started.
  double time_limit = 300;
  /// Folder in which code is kept between processes; it must exist. If empty, code is kept as long as a program has it.
  std::string cache_folder;
};

/// Compiles text, unless its code is known. All functions may be called from several threads.
class CompilerCache {
 public:
  explicit CompilerCache(SourceCompiler compiler);
  ~CompilerCache();
  CompilerCache(const CompilerCache&) = delete;
  CompilerCache& operator=(const CompilerCache&) = delete;

  /// Compiles a text. `messages` gets what the compiler said, nothing if the code was known. Errors: INTERNAL with the messages and the
  /// ops of the function to which the first one belongs; DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED if no file can be written;
  /// NOT_FOUND if there is no such command.
  Status compile(const std::string& text, std::shared_ptr<const std::string>& code, std::string& messages) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace collet::codegen
