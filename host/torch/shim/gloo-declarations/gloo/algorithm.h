// Gloo is inside libtorch, but its headers do not come with it. These files declare as much of it as the header of
// c10d's process group names. Nothing of Gloo is called through them.
#pragma once
