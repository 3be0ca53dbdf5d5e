// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/collet.h>
#include <collet/folder_store.hpp>

#include <memory>
#include <optional>
#include <string>

#include "hlo/base/status.h"
#include "sdk/runtime/processes/transport.h"

namespace CLI {
class App;
}

/// \file
/// Programs that run in several processes of the tool.

namespace collet::tool {

/// The options that say whether there are several processes, and which of them this one is.
struct ProcessChoice {
  unsigned count = 1;         ///< processes
  int number = -1;            ///< of this one; negative: it starts the others
  std::string store;          ///< folder through which they find each other
  bool is_told = false;       ///< the options say how many there are
  std::string launcher = {};  ///< what has started the processes, if the options do not say it: see find_launcher()

  bool starts_others() const { return count > 1 && number < 0; }
  bool is_member() const { return count > 1 && number >= 0; }
  /// Returns the name of a file that this process writes in place of `name`: processes do not write to the same file.
  /// Empty and "-" stay.
  std::string own_file(const std::string& name) const;
};

/// The group of which this process is a member, while a client joins it.
class Group {
 public:
  /// An error if the processes of a launcher do not find each other.
  static Expected<std::unique_ptr<Group>> of(const ProcessChoice& choice);
  const collet_processes* get() const { return &group_; }

 private:
  explicit Group(const ProcessChoice& choice);
  std::optional<FolderStore> store_;
  collet_processes group_{};
};

/// Loads a transport by name or path; those of Collet are beside libcollet.
Expected<runtime::Transport> load_transport_beside_libcollet(const std::string& name);

/// Unless the options say whether there are several processes: looks in the environment for a launcher that has started some.
void find_launcher(ProcessChoice& choice);

/// Adds --processes, --process and --store. `about`: the help of --processes.
void add_process_options(CLI::App& verb, ProcessChoice& choice, const std::string& about);
/// Checks that the options fit together.
Status check_processes(const ProcessChoice& choice);
/// Where process 0 writes: what it writes is shown when it has ended, as that of the others is, or it writes on the terminal itself.
enum class FirstProcess { kShownAtTheEnd, kOnTheTerminal };
/// Starts the command of this process that many times, each as one of the processes, and waits for all. Shows what they
/// write, one process after another; errors name the process. Returns the exit code of the first one that fails.
int start_processes(const ProcessChoice& choice, FirstProcess first = FirstProcess::kShownAtTheEnd);

}  // namespace collet::tool
