// The store and the operations that connect the ranks of a run: c10d's TCPStore and its process groups. The one over
// Gloo is made here, the one over NCCL in `cuda/nccl.cpp`.
#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "group.h"
#include "guarded.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

// An operation that runs. c10d's own `wait` throws where time runs out, which costs a backtrace each time. On the CPU
// the end calls back; what runs on a GPU is asked whether it has ended.
struct Running {
  Running(c10::intrusive_ptr<c10d::Work> work, bool is_on_cpu) : work(std::move(work)) {
    if (!is_on_cpu) return;
    end = std::make_shared<End>();
    this->work->getFuture()->addCallback([end = end](c10::ivalue::Future &) {
      std::lock_guard<std::mutex> lock(end->mutex);
      end->time = Clock::now();
      end->reached = true;
      end->changed.notify_all();
    });
  }

  using Clock = std::chrono::steady_clock;

  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;
    Clock::time_point time;
  };

  c10::intrusive_ptr<c10d::Work> work;
  std::shared_ptr<End> end;
};

std::vector<uint8_t> bytes(const char *text) { return std::vector<uint8_t>(text, text + strlen(text)); }

// Where a rank is gone, c10d warns in each of its operations with a C++ backtrace, beside the error that it throws. What
// the user sets counts: `TORCH_CPP_LOG_LEVEL=WARNING`.
void set_log_level() {
  static std::once_flag once;
  std::call_once(once, [] {
    FLAGS_caffe2_log_level = c10::GLOG_ERROR;
    if (std::getenv("TORCH_CPP_LOG_LEVEL")) c10::initLogging();
  });
}

char *text(const std::vector<uint8_t> &bytes) { return strndup(reinterpret_cast<const char *>(bytes.data()), bytes.size()); }

} // namespace

extern "C" {

// Opens the store at `host` and `port`; the one that serves it is a client too. It serves by `listener`, a socket that
// listens at the port and becomes the store's, or on all networks if that is negative.
char *gavel_store_open(const char *host, uint16_t port, bool serves, int listener, int64_t timeout_ms, Store **out) {
  return guarded([&] {
    set_log_level();
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = serves;
    if (listener >= 0) options.masterListenFd = listener;
    options.waitWorkers = false;
    options.timeout = std::chrono::milliseconds(timeout_ms);
    *out = new Store(c10::make_intrusive<c10d::TCPStore>(host, options));
  });
}

void gavel_store_close(Store *store) { delete store; }

char *gavel_store_set(Store *store, const char *key, const char *value) {
  return guarded([&] { (*store)->set(key, bytes(value)); });
}

// Sets a key that has no value; `value` becomes what it has in the end, which the caller frees with `gavel_free`.
char *gavel_store_claim(Store *store, const char *key, const char *wanted, char **value) {
  return guarded([&] { *value = text((*store)->compareSet(key, {}, bytes(wanted))); });
}

char *gavel_store_add(Store *store, const char *key, int64_t delta, int64_t *sum) {
  return guarded([&] { *sum = (*store)->add(key, delta); });
}

char *gavel_store_has(Store *store, const char *key, bool *has) {
  return guarded([&] { *has = (*store)->check({key}); });
}

// The values of keys that exist, each of which the caller frees with `gavel_free`.
char *gavel_store_get(Store *store, const char *const *keys, size_t count, char **values) {
  return guarded([&] {
    auto found = (*store)->multiGet(std::vector<std::string>(keys, keys + count));
    for (size_t i = 0; i < count; ++i) values[i] = text(found.at(i));
  });
}

// Connects the ranks. Gloo listens on a free port of the interface `interface` or the address `host`; where both are
// empty, of the address that the machine's name has.
char *gavel_group_join(Store *store, const char *prefix, const char *interface, const char *host, int rank, int size,
                       int64_t timeout_ms, Group **out) {
  return guarded([&] {
    using Gloo = c10d::ProcessGroupGloo;
    auto options = Gloo::Options::create(std::chrono::milliseconds(timeout_ms));
    options->devices.push_back(*interface ? Gloo::createDeviceForInterface(interface)
                               : *host    ? Gloo::createDeviceForHostname(host)
                                          : Gloo::createDefaultDevice());
    auto keys = c10::make_intrusive<c10d::PrefixStore>(prefix, *store);
    *out = new Group(c10::make_intrusive<Gloo>(std::move(keys), rank, size, std::move(options)));
  });
}

void gavel_group_leave(Group *group) { delete group; }

char *gavel_group_sum(Group *group, at::Tensor *tensor, Running **out) {
  return guarded([&] {
    std::vector<at::Tensor> tensors{*tensor};
    *out = new Running((*group)->allreduce(tensors), tensor->is_cpu());
  });
}

// Only the tensor of the rank `to` has the sum afterwards; the others have no meaning.
char *gavel_group_reduce(Group *group, at::Tensor *tensor, int to, Running **out) {
  return guarded([&] {
    std::vector<at::Tensor> tensors{*tensor};
    c10d::ReduceOptions options;
    options.rootRank = to;
    *out = new Running((*group)->reduce(tensors, options), tensor->is_cpu());
  });
}

char *gavel_group_broadcast(Group *group, at::Tensor *tensor, int from, Running **out) {
  return guarded([&] {
    std::vector<at::Tensor> tensors{*tensor};
    c10d::BroadcastOptions options;
    options.rootRank = from;
    *out = new Running((*group)->broadcast(tensors, options), tensor->is_cpu());
  });
}

// `all` is as large as the `own` of all ranks, in their order.
char *gavel_group_gather(Group *group, at::Tensor *own, at::Tensor *all, Running **out) {
  return guarded([&] { *out = new Running((*group)->_allgather_base(*all, *own), own->is_cpu()); });
}

// Waits for at most `timeout_ms`; `done` says whether the operation has ended, and `ago_ns` how long ago.
char *gavel_running_wait(Running *running, int64_t timeout_ms, bool *done, int64_t *ago_ns) {
  return guarded([&] {
    using Clock = Running::Clock;
    auto time = std::chrono::milliseconds(timeout_ms);
    *ago_ns = 0;
    if (auto end = running->end) {
      std::unique_lock<std::mutex> lock(end->mutex);
      *done = end->changed.wait_for(lock, time, [&] { return end->reached; });
      *ago_ns = std::chrono::nanoseconds(Clock::now() - end->time).count();
    } else {
      auto until = Clock::now() + time;
      while (!(*done = running->work->isCompleted()) && Clock::now() < until)
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (!*done) return;
    if (auto error = running->work->exception()) std::rethrow_exception(error);
    running->work->wait();
  });
}

void gavel_running_free(Running *running) { delete running; }
}
