int count;
void add(void);
