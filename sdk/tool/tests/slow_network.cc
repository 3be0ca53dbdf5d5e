// SPDX-License-Identifier: Apache-2.0
#include "sdk/tool/tests/slow_network.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <queue>
#include <random>

namespace collet::tool::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kDevice[] = "tap0";

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Opens the end of a network device that is made in a namespace; returns a negative number if that fails.
int open_device(const std::string& name) {
  const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int other = open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  int device = -1;
  if (own >= 0 && other >= 0 && setns(other, CLONE_NEWNET) == 0) {
    device = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    std::strncpy(request.ifr_name, kDevice, sizeof request.ifr_name - 1);
    if (device >= 0 && ioctl(device, TUNSETIFF, &request) != 0) {
      close(device);
      device = -1;
    }
    if (setns(own, CLONE_NEWNET) != 0) std::abort();
  }
  if (own >= 0) close(own);
  if (other >= 0) close(other);
  return device;
}

struct Frame {
  Clock::time_point due;
  size_t from;
  std::vector<char> data;
};

// Gives each frame to all other hosts, later; the last bytes of their addresses tell them apart.
[[noreturn]] void move_frames(const std::vector<int>& devices, std::chrono::microseconds delay, double loss) {
  std::mt19937 random(1);
  std::bernoulli_distribution is_lost(loss);
  std::queue<Frame> waiting;
  std::vector<char> block(1 << 16);
  while (true) {
    std::vector<pollfd> fds;
    for (const int device : devices) fds.push_back({device, POLLIN, 0});
    timespec limit{1, 0};
    if (!waiting.empty()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::nanoseconds>(waiting.front().due - Clock::now()).count();
      limit = {0, std::clamp<long>(left, 0, 999'999'999)};
    }
    ppoll(fds.data(), fds.size(), &limit, nullptr);
    const auto now = Clock::now();
    for (size_t i = 0; i < devices.size(); ++i)
      for (ssize_t n; (n = read(devices[i], block.data(), block.size())) > 0;)
        if (!is_lost(random)) waiting.push({now + delay, i, std::vector<char>(block.data(), block.data() + n)});
    for (; !waiting.empty() && waiting.front().due <= now; waiting.pop()) {
      const Frame& frame = waiting.front();
      // A host whose device is not set up yet loses the frame, as in a network.
      for (size_t i = 0; i < devices.size(); ++i)
        if (i != frame.from) [[maybe_unused]]
          const ssize_t written = write(devices[i], frame.data.data(), frame.data.size());
    }
  }
}

}  // namespace

std::string SlowNetwork::address(int host) {
  return "10.77.0." + std::to_string(host + 1);
}

std::string SlowNetwork::before(int host) const {
  return "ip netns exec " + names_[static_cast<size_t>(host)];
}

std::unique_ptr<SlowNetwork> SlowNetwork::make(int hosts, std::chrono::microseconds delay, double loss,
                                               std::string& why) {
  if (geteuid() != 0) {
    why = "network namespaces need root";
    return nullptr;
  }
  std::unique_ptr<SlowNetwork> out(new SlowNetwork);
  std::vector<int> devices;
  for (int host = 0; host < hosts; ++host) {
    const std::string name = "collet_test_" + std::to_string(getpid()) + "_" + std::to_string(host);
    if (!run("ip netns add " + name)) {
      why = "'ip netns add' fails (Debian: iproute2)";
      return nullptr;
    }
    out->names_.push_back(name);
    devices.push_back(open_device(name));
    if (devices.back() < 0) {
      why = std::string("/dev/net/tun: ") + std::strerror(errno);
      return nullptr;
    }
  }
  out->switch_ = fork();
  if (out->switch_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    move_frames(devices, delay, loss);
  }
  for (const int device : devices) close(device);
  for (int host = 0; host < hosts; ++host)
    if (!run(out->before(host) + " ip link set lo up") ||
        !run(out->before(host) + " ip addr add " + address(host) + "/24 dev " + kDevice) ||
        !run(out->before(host) + " ip link set " + kDevice + " up")) {
      why = "a network device cannot be set up";
      return nullptr;
    }
  return out;
}

SlowNetwork::~SlowNetwork() {
  if (switch_ > 0) {
    kill(switch_, SIGKILL);
    waitpid(switch_, nullptr, 0);
  }
  for (const std::string& name : names_) run("ip netns del " + name);
}

}  // namespace collet::tool::testing
