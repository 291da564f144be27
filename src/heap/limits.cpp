#include "limits.hpp"

#include <algorithm>

namespace mallard::engine {

constinit limits the_limits;

void limits::set(std::size_t soft, std::size_t hard, limit_call call, void* context) noexcept
{
    constexpr std::size_t none = ~std::size_t{0};
    context_.store(context, std::memory_order_relaxed);
    call_.store(call, std::memory_order_relaxed);
    soft = soft == 0 ? none : soft;
    hard = hard == 0 ? none : hard;
    soft_.store(soft, std::memory_order_relaxed);
    hard_.store(hard, std::memory_order_relaxed);
    pending_.store(0, std::memory_order_relaxed);
    low_.store(std::min(soft, hard), std::memory_order_relaxed);
}

bool limits::charge_above(std::size_t bytes, std::size_t held) noexcept
{
    std::size_t const soft = soft_.load(std::memory_order_relaxed);
    std::size_t const hard = hard_.load(std::memory_order_relaxed);
    if (held - bytes < soft / 4 * 3) // the bytes before this charge
        low_.store(std::min(soft, hard), std::memory_order_relaxed);
    if (held > hard) {
        uncharge(bytes);
        pending_.fetch_or(hard_met, std::memory_order_relaxed);
        return false;
    }
    if (held > soft && low_.exchange(0, std::memory_order_relaxed) != 0)
        pending_.fetch_or(soft_met, std::memory_order_relaxed);
    return true;
}

bool limits::call_back() noexcept
{
    const void* nobody = nullptr;
    if (!calling_thread_.compare_exchange_strong(nobody, __builtin_thread_pointer(),
                                                 std::memory_order_acquire))
        return false;
    unsigned const what = pending_.exchange(0, std::memory_order_relaxed);
    limit_call const call = call_.load();
    if (call != nullptr && what != 0)
        call(context_.load(), held(), (what & hard_met) != 0 ? hard_.load() : soft_.load());
    calling_thread_.store(nullptr, std::memory_order_release);
    return call != nullptr && (what & hard_met) != 0;
}

void limits::forget_calling_thread() noexcept
{
    if (calling_thread_.load(std::memory_order_relaxed) != __builtin_thread_pointer())
        calling_thread_.store(nullptr, std::memory_order_relaxed);
}

} // namespace mallard::engine
