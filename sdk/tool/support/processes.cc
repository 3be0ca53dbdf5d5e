// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/support/processes.h"
#include "hlo/base/temporary_folder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdlib>
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

// Starts a process whose output goes to two files, or where that of this one goes if their names are empty; returns its number, or a
// negative error.
pid_t start(const std::vector<std::string>& arguments, const std::string& out, const std::string& err) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!out.empty()) posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), kFlags, 0600);
  if (!err.empty()) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), kFlags, 0600);
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

Group::Group(const ProcessChoice& choice) {
  group_.struct_size = sizeof group_;
  group_.rank = static_cast<uint32_t>(choice.number);
  group_.size = choice.count;
}

Expected<std::unique_ptr<Group>> Group::of(const ProcessChoice& choice) {
  std::unique_ptr<Group> out(new Group(choice));
  if (choice.launcher.empty()) {
    out->store_.emplace(choice.store, out->group_.rank);
    out->group_.store = out->store_->store();
    return out;
  }
  const auto failed = [&](const Status& status) {
    return Status(status.code(),
                  fmt::format("{} has started {} processes, of which this is {}; they do not find each other: {}. "
                              "--processes, --process and --store tell them how; --processes 1 runs each alone",
                              choice.launcher, choice.count, choice.number, status.message()));
  };
  Expected<runtime::Transport> transport = load_transport_beside_libcollet(runtime::transport_name(nullptr));
  if (!transport.ok()) return failed(transport.status());
  if (!transport->launched) transport = load_transport_beside_libcollet("mpi");
  if (!transport.ok()) return failed(transport.status());
  COLLET_ASSIGN(const uint32_t timeout_ms, runtime::exchange_timeout_ms(0));
  uint32_t rank = 0, size = 0;
  collet_error error{};
  const collet_status status = transport->launched(timeout_ms, &rank, &size, &out->group_.store, &error);
  if (status != COLLET_OK) return failed(from_c(status, error, "'" + transport->path + "'"));
  if (rank == out->group_.rank && size == out->group_.size) return out;
  return failed(failed_precondition(fmt::format("for MPI, this is process {} of {}", rank, size)));
}

Expected<runtime::Transport> load_transport_beside_libcollet(const std::string& name) {
  // Where the library is in which the functions of collet.h are.
  return runtime::load_transport(name, dlsym(RTLD_DEFAULT, "collet_client_open"));
}

void find_launcher(ProcessChoice& choice) {
  if (choice.is_told || choice.number >= 0 || !choice.store.empty()) return;
  struct Launcher {
    const char *name, *number, *count;
  };
  // A script of sbatch has SLURM_PROCID and SLURM_NTASKS, too, and is no process of a step.
  constexpr Launcher kLaunchers[] = {{"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"a launcher with PMI", "PMI_RANK", "PMI_SIZE"},
                                     {"Slurm's srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const Launcher& one : kLaunchers) {
    const char* const number_text = std::getenv(one.number);
    const char* const count_text = std::getenv(one.count);
    if (!number_text || !count_text) continue;
    const auto number = parse_whole_number(number_text), count = parse_whole_number(count_text);
    if (!number || !count || *count < 2 || *count > kMostProcesses || *number >= *count) continue;
    choice.number = static_cast<int>(*number);
    choice.count = static_cast<unsigned>(*count);
    choice.launcher = one.name;
    return;
  }
}

void add_process_options(CLI::App& verb, ProcessChoice& choice, const std::string& about) {
  const auto set = [&choice](uint64_t count) {
    choice.count = static_cast<unsigned>(count);
    choice.is_told = true;
  };
  add_number_option(verb, "--processes", set, about, 1, kMostProcesses);
  add_number_option(verb, "--process", choice.number, "This is process N of --processes, which something else starts",
                    0, static_cast<int>(kMostProcesses));
  verb.add_option("--store", choice.store,
                  "With --process: an empty folder through which the processes find each other")
      ->type_name("DIR");
}

Status check_processes(const ProcessChoice& choice) {
  if ((choice.number < 0 && choice.store.empty()) || !choice.launcher.empty()) return ok_status();
  if (choice.number < 0 || choice.store.empty())
    return invalid_argument("--process and --store go together: without them --processes starts all processes itself");
  if (static_cast<unsigned>(choice.number) >= choice.count)
    return invalid_argument(fmt::format("--process {} is not below --processes {}", choice.number, choice.count));
  std::error_code ignored;
  if (!fs::is_directory(choice.store, ignored))
    return invalid_argument(fmt::format("--store '{}' is no folder", choice.store));
  return ok_status();
}

int start_processes(const ProcessChoice& choice, FirstProcess first) {
  const TemporaryFolder folder;
  if (folder.path().empty()) return report(kRuntime, std::string("no temporary folder: ") + std::strerror(errno));
  const std::string store = folder.path() + "/store";
  std::error_code ignored;
  fs::create_directory(store, ignored);
  const auto file = [&](const char* kind, unsigned number) {
    if (number == 0 && first == FirstProcess::kOnTheTerminal) return std::string();
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
    if (file("out", number).empty()) continue;
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
