// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/processes.h"
#include "hlo/base/temporary_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "sdk/tool/support/files.h"
#include "sdk/tool/support/option_types.h"
#include "sdk/tool/support/terminal.h"
#include "sdk/tool/verb.h"

namespace collet::tool {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostProcesses = 4096;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the arguments with which this process was started.
std::vector<std::string> own_arguments() {
  const std::string text = read_all("/proc/self/cmdline");
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Starts a process whose output goes to two files; returns its number, or a negative error.
pid_t start(const std::vector<std::string>& arguments, const std::string& out, const std::string& err) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), kFlags, 0600);
  pid_t process = 0;
  const int problem = posix_spawn(&process, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return problem == 0 ? process : -problem;
}

// Returns the exit code of a process that has ended; says how it ended if a signal ended it.
int exit_code(unsigned number, int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  report(kRuntime,
         fmt::format("process {} was ended by signal {} ({})", number, WTERMSIG(status), strsignal(WTERMSIG(status))));
  return kRuntime;
}

}  // namespace

std::string ProcessChoice::own_file(const std::string& name) const {
  if (!is_member() || name.empty() || name == "-") return name;
  return fmt::format("{}.{}", name, number);
}

Group::Group(const ProcessChoice& choice) : store_(choice.store, static_cast<uint32_t>(choice.number)), group_{} {
  group_.struct_size = sizeof group_;
  group_.rank = static_cast<uint32_t>(choice.number);
  group_.size = choice.count;
  group_.store = store_.store();
}

void add_process_options(CLI::App& verb, ProcessChoice& choice) {
  add_number_option(
      verb, "--processes", choice.count,
      "Start so many processes, over which the participants are spread; each writes its own files, NAME.0, "
      "NAME.1 ...",
      1u, kMostProcesses);
  add_number_option(verb, "--process", choice.number, "This is process N of --processes, which something else starts",
                    0, static_cast<int>(kMostProcesses));
  verb.add_option("--store", choice.store,
                  "With --process: an empty folder through which the processes find each other")
      ->type_name("DIR");
}

Status check_processes(const ProcessChoice& choice) {
  if (choice.number < 0 && choice.store.empty()) return ok_status();
  if (choice.number < 0 || choice.store.empty())
    return invalid_argument("--process and --store go together: without them --processes starts all processes itself");
  if (static_cast<unsigned>(choice.number) >= choice.count)
    return invalid_argument(fmt::format("--process {} is not below --processes {}", choice.number, choice.count));
  std::error_code ignored;
  if (!fs::is_directory(choice.store, ignored))
    return invalid_argument(fmt::format("--store '{}' is no folder", choice.store));
  return ok_status();
}

int start_processes(const ProcessChoice& choice) {
  const TemporaryFolder folder;
  if (folder.path().empty()) return report(kRuntime, std::string("no temporary folder: ") + std::strerror(errno));
  const std::string store = folder.path() + "/store";
  std::error_code ignored;
  fs::create_directory(store, ignored);
  const auto file = [&](const char* kind, unsigned number) {
    return fmt::format("{}/{}.{}", folder.path(), kind, number);
  };
  std::vector<pid_t> processes;
  int code = kDone;
  for (unsigned number = 0; number < choice.count; ++number) {
    std::vector<std::string> arguments = own_arguments();
    for (const std::string& more : {std::string("--process"), std::to_string(number), std::string("--store"), store})
      arguments.push_back(more);
    const pid_t process = start(arguments, file("out", number), file("err", number));
    if (process < 0) {
      code = report(kRuntime, fmt::format("process {} cannot be started: {}", number, std::strerror(-process)));
      for (const pid_t started : processes) kill(started, SIGKILL);
      break;
    }
    processes.push_back(process);
  }
  for (unsigned number = 0; number < processes.size(); ++number) {
    int status = 0;
    while (waitpid(processes[number], &status, 0) < 0 && errno == EINTR) {
    }
    const int ended = exit_code(number, status);
    if (code == kDone) code = ended;
    show("{}", read_all(file("out", number)));
    const std::string errors = read_all(file("err", number));
    for (size_t at = 0; at < errors.size();) {
      const size_t end = std::min(errors.find('\n', at), errors.size());
      fmt::print(stderr, "process {}: {}\n", number, errors.substr(at, end - at));
      at = end + 1;
    }
  }
  return code;
}

}  // namespace collet::tool
