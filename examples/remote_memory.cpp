// One queue pair writes into the memory of another, adds to a counter there, and reads the memory back. The other end
// makes no calls. Both ends are in this process for brevity. Two processes would first exchange their Invitations
// (verbs/connection.hpp).

#include <fairlead/verbs.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>

using namespace fairlead::verbs;

int main() {
  using namespace std::chrono_literals;
  const Device device = value_or_exit(devices()).back();
  Context context = value_or_exit(Context::open(device));
  auto domain = value_or_exit(ProtectionDomain::allocate(context));
  auto queue = value_or_exit(CompletionQueue::create(context, {.capacity = 16}));
  const QpOptions options{.send_queue = &queue, .receive_queue = &queue, .capacity = {.max_send_wr = 16}};
  auto near = value_or_exit(QueuePair::create(domain, options));
  auto far = value_or_exit(QueuePair::create(domain, options));
  value_or_exit(connect(near, far.address()));
  value_or_exit(connect(far, near.address()));

  constexpr std::uint32_t kAll =
      access::local_write | access::remote_write | access::remote_read | access::remote_atomic;
  auto ours = value_or_exit(MemoryRegion::allocate(domain, 64, access::local_write));
  auto theirs = value_or_exit(MemoryRegion::allocate(domain, 64, kAll));
  char* const text = static_cast<char*>(ours.address());
  std::strcpy(text, "hello, far memory");

  const RemoteMemory there = theirs.remote(), counter = theirs.remote(32);
  const Sge out = ours.sge(0, 18), before = ours.sge(32, 8), back = ours.sge(40, 18);
  const std::array<SendRequest, 3> requests{{{.id = 1,
                                              .sges = {&out, 1},
                                              .opcode = SendOpcode::write,
                                              .flags = send_flags::signaled,
                                              .rkey = there.rkey,
                                              .remote_addr = there.address},
                                             {.id = 2,
                                              .sges = {&before, 1},
                                              .opcode = SendOpcode::fetch_add,
                                              .flags = send_flags::signaled,
                                              .rkey = counter.rkey,
                                              .remote_addr = counter.address,
                                              .compare_add = 42},
                                             {.id = 3,
                                              .sges = {&back, 1},
                                              .opcode = SendOpcode::read,
                                              .flags = send_flags::signaled,
                                              .rkey = there.rkey,
                                              .remote_addr = there.address}}};
  if (near.post_send_all(requests) != 0) return 1;
  for (std::size_t done = 0; done < requests.size();) {
    std::array<WorkCompletion, 4> completions;
    const std::size_t count = value_or_exit(queue.wait(completions, fairlead::Instant::clock::now() + 5s));
    for (std::size_t i = 0; i < count; ++i, ++done) std::cout << describe(completions[i]) << '\n';
  }
  const std::uint64_t counted = *reinterpret_cast<const std::uint64_t*>(static_cast<char*>(theirs.address()) + 32);
  std::cout << "read back: " << text + 40 << "; the counter is " << counted << '\n';
  return std::strcmp(text + 40, "hello, far memory") == 0 && counted == 42 ? 0 : 1;
}
