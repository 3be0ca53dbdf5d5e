// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>
#include <collet/folder_store.hpp>

#include <memory>
#include <string>

#include "hlo/base/status.h"

namespace CLI {
class App;
}

/// \file
/// Programs that run in several processes of the tool.

namespace collet::tool {

/// The options that say whether there are several processes, and which of them this one is.
struct ProcessChoice {
  unsigned count = 1;  ///< processes
  int number = -1;     ///< of this one; negative: it starts the others
  std::string store;   ///< folder through which they find each other

  bool starts_others() const { return count > 1 && number < 0; }
  bool is_member() const { return count > 1 && number >= 0; }
  /// Returns the name of a file that this process writes in place of `name`: processes do not write to the same file.
  /// Empty and "-" stay.
  std::string own_file(const std::string& name) const;
};

/// The group of which this process is a member, while a client joins it.
class Group {
 public:
  explicit Group(const ProcessChoice& choice);
  const collet_processes* get() const { return &group_; }

 private:
  FolderStore store_;
  collet_processes group_;
};

/// Adds --processes, --process and --store.
void add_process_options(CLI::App& verb, ProcessChoice& choice);
/// Checks that the options fit together.
Status check_processes(const ProcessChoice& choice);
/// Starts the command of this process that many times, each as one of the processes, and waits for all. Shows what they
/// write, one process after another; errors name the process. Returns the exit code of the first one that fails.
int start_processes(const ProcessChoice& choice);

}  // namespace collet::tool
